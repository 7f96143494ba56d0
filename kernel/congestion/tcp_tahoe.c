// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Tahoe (4.3BSD-Tahoe): V. Jacobson, "Congestion Avoidance and Control",
 * SIGCOMM 1988, with fast retransmit and without fast recovery.
 *
 * The third duplicate ACK is taken for a timeout: ssthresh becomes half the window,
 * the window one segment, and everything from the hole on is sent again (go-back-N)
 * in slow start. Linux decides when a segment is lost and marks what is to be sent;
 * this file decides what follows from it. It needs SACK, RACK and F-RTO off
 * (`testbed check --variants` has the recipe).
 */

#include <linux/module.h>
#include <net/tcp.h>

struct tahoe {
	u32 snd_una;	/* as the ACK before this one left it */
};

static void tahoe_init(struct sock *sk)
{
	struct tahoe *ca = inet_csk_ca(sk);

	ca->snd_una = tcp_sk(sk)->snd_una;
}

/*
 * Runs after the kernel has looked for losses and before it retransmits.
 *
 * Recovery lasts no longer than that: the loss state that replaces it goes back to the
 * hole. ssthresh was halved on the way in, and tcp_enter_loss() sees that. In the loss
 * state duplicate ACKs, such as those that going back causes, do not count, until
 * something sent after it is acknowledged.
 */
static void tahoe_cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tahoe *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	if (state == TCP_CA_Recovery)
		tcp_enter_loss(sk);
	else if (state == TCP_CA_CWR)	/* the host's own queue is full */
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), tp->snd_ssthresh));
	else if (tp->snd_una != ca->snd_una)
		/* RFC 2581: by one segment, however many the ACK covers. */
		tcp_reno_cong_avoid(sk, tp->snd_una, 1);
	ca->snd_una = tp->snd_una;
	tcp_update_pacing_rate(sk);
}

static struct tcp_congestion_ops tahoe __read_mostly = {
	.name		= "tahoe",
	.owner		= THIS_MODULE,
	.init		= tahoe_init,
	.cong_control	= tahoe_cong_control,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init tahoe_register(void)
{
	BUILD_BUG_ON(sizeof(struct tahoe) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tahoe);
}

module_init(tahoe_register);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Tahoe");
