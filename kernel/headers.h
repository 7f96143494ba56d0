/* SPDX-License-Identifier: GPL-2.0 */
/* What most of the kernel's files include, for `cc` to read once; the first are every file's. */
#include <linux/kconfig.h>
#include <linux/compiler_types.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/mm.h>
#include <linux/fs.h>
#include <linux/skbuff.h>
#include <linux/netdevice.h>
#include <net/sock.h>
