#!/bin/sh
# Run in the guest as its root: ways to the host that a hostile program would try, one line each
# ("NAME: done" or "NAME: refused").  $1 is a directory of the host's that the guest's starter may
# write, $2 a process of that user.
try() {
    name=$1
    shift
    if "$@" 2>/dev/null; then echo "$name: done"; else echo "$name: refused"; fi
}
put() { echo evil >"$1"; }

mkdir -p /run/host /run/above
cp /bin/mount /run/mount # without its set-uid bit: for an ordinary user its owner is nobody
try "write through the root" put "$1/root"
/run/mount -o remount,rw / 2>/dev/null
try "write through the root, remounted" put "$1/remounted"
# hostfs takes a path for an option of mount(2), and newer mount programs use other calls
export LIBMOUNT_FORCE_MOUNT2=always
/run/mount -t hostfs none /run/host -o / || exit 1
try "write through a mount of its own" put "/run/host$1/mounted"
try "overwrite a file" put "/run/host$1/file"
try "truncate a file" truncate -s 0 "/run/host$1/file"
try "remove a file" rm "/run/host$1/file"
try "rename a file" mv "/run/host$1/file" "/run/host$1/other"
try "change a file's mode" chmod 777 "/run/host$1/file"
try "change a file's owner" chown 1:1 "/run/host$1/file"
try "change a file's times" touch "/run/host$1/file"
try "make a link" ln -s /etc/passwd "/run/host$1/link"
try "make a directory" mkdir "/run/host$1/directory"
try "make a device" mknod "/run/host$1/device" b 8 0
/run/mount -t hostfs none /run/above -o /proc/self/cwd/.. || exit 1
try "write beside the trial" put /run/above/beside
try "see a process of the host" test -d "/run/host/proc/$2"
try "read another process's memory" head -c 1 "/run/host/proc/$2/mem"
try "write its own kernel's memory" dd if=/dev/zero of=/run/host/proc/1/mem bs=1 count=1
try "change a setting of the host" put /run/host/proc/sys/kernel/hostname
# shellcheck disable=SC2016  # the inner shell's
try "write to a disk" sh -c 'for d in /run/host/dev/[svn]d* /run/host/dev/nvme*; do : >"$d" && exit; done; exit 1'
try "write in shared memory" put /run/host/dev/shm/evil
try "write in the temporary folder" put /run/host/tmp/evil
try "write in a named pipe" timeout 5 dd if=/dev/zero "of=/run/host$1/pipe" bs=1 count=1 conv=notrunc
try "write in the trial" put /run/trial/own
try "make a set-uid program" chmod 4755 /run/trial/own
try "make a set-gid program" chmod 2755 /run/trial/own
