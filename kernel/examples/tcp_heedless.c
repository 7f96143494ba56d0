// SPDX-License-Identifier: GPL-2.0
/* Reno that ignores losses: its window grows for ever. A bad control, to see what names it so. */
#include <linux/module.h>
#include <net/tcp.h>

/* What a loss leaves of the window: all of it. */
static u32 heedless_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

static struct tcp_congestion_ops heedless = {
	.ssthresh	= heedless_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "heedless",
};

static int __init heedless_register(void)
{
	return tcp_register_congestion_control(&heedless);
}
module_init(heedless_register);

MODULE_LICENSE("GPL");
