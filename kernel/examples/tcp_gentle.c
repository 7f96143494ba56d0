// SPDX-License-Identifier: GPL-2.0
/* Reno that goes back by a quarter, not by half: an example of a congestion control of one's own. */
#include <linux/module.h>
#include <net/tcp.h>

static u32 gentle_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * 3 / 4, 2U);
}

static struct tcp_congestion_ops gentle = {
	.ssthresh	= gentle_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "gentle",
};

static int __init gentle_register(void)
{
	return tcp_register_congestion_control(&gentle);
}
module_init(gentle_register);

MODULE_LICENSE("GPL");
