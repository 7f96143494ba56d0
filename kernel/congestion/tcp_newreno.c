// SPDX-License-Identifier: GPL-2.0
/*
 * NewReno, the Slow-but-Steady variant, as it was: RFC 3782.
 *
 * Linux's own, but for two things that came later or differ. An ACK opens the window by
 * one segment however many it covers (Linux counts all of them, RFC 3465 without a
 * limit). And a timeout in a recovery that outlasts the timer halves ssthresh again
 * (RFC 5681, equation 4), which Linux leaves out. With SACK it is the SACK variant.
 * It needs RACK and F-RTO off (`testbed check --variants` has the recipe).
 */

#include <linux/module.h>
#include <net/tcp.h>

static void newreno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, 1);
}

/* Recovery has brought the flight down to ssthresh: half of that is half of the flight. */
static void newreno_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state == TCP_CA_Loss && inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		tp->snd_ssthresh = max(tp->snd_ssthresh >> 1, 2U);
}

static struct tcp_congestion_ops newreno __read_mostly = {
	.name		= "newreno",
	.owner		= THIS_MODULE,
	.set_state	= newreno_set_state,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= newreno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init newreno_register(void)
{
	return tcp_register_congestion_control(&newreno);
}

module_init(newreno_register);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("NewReno, the Slow-but-Steady variant");
