// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Reno as it was (4.3BSD-Reno): V. Jacobson, "Modified TCP congestion avoidance
 * algorithm", end2end-interest, 30 April 1990; RFC 2581.
 *
 * Fast recovery ends with the first ACK of new data, whether or not it covers all that
 * was sent before the loss. With several losses in a window each is a recovery of its
 * own that halves the window again, as long as three duplicate ACKs come; then the
 * retransmit timer has to help. It needs SACK, RACK and F-RTO off
 * (`testbed check --variants` has the recipe).
 */

#include <linux/module.h>
#include <net/tcp.h>

struct reno1990 {
	u32 snd_una;	/* as the ACK before this one left it */
	bool recovering;
};

static void reno1990_init(struct sock *sk)
{
	struct reno1990 *ca = inet_csk_ca(sk);

	ca->snd_una = tcp_sk(sk)->snd_una;
	ca->recovering = false;
}

/*
 * Runs before the kernel looks for losses: with high_seq behind snd_una, the kernel takes
 * any ACK of new data for the one that ends recovery (at snd_una itself it would wait for
 * one more, as NewReno does).
 */
static void reno1990_in_ack_event(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct reno1990 *ca = inet_csk_ca(sk);

	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery &&
	    tp->snd_una != ca->snd_una)
		tp->high_seq = tp->snd_una - 1;
}

/*
 * Runs after the kernel has looked for losses and before it retransmits.
 *
 * The window in recovery is ssthresh. The kernel takes a segment out of flight for every
 * duplicate ACK, which is what inflating the window comes to. The fast retransmission
 * itself is not held back by a window that has just been halved.
 */
static void reno1990_cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct reno1990 *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;
	bool recovering = state == TCP_CA_Recovery;

	if (recovering || ca->recovering) {
		u32 window = tp->snd_ssthresh;

		if (tp->lost_out > tp->retrans_out)
			window = max(window, tcp_packets_in_flight(tp) + 1);
		tcp_snd_cwnd_set(tp, window);
	} else if (state == TCP_CA_CWR) {	/* the host's own queue is full */
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), tp->snd_ssthresh));
	} else if (tp->snd_una != ca->snd_una) {
		/* RFC 2581: by one segment, however many the ACK covers. */
		tcp_reno_cong_avoid(sk, tp->snd_una, 1);
	}
	ca->snd_una = tp->snd_una;
	ca->recovering = recovering;
	tcp_update_pacing_rate(sk);
}

static struct tcp_congestion_ops reno1990 __read_mostly = {
	.name		= "reno1990",
	.owner		= THIS_MODULE,
	.init		= reno1990_init,
	.in_ack_event	= reno1990_in_ack_event,
	.cong_control	= reno1990_cong_control,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init reno1990_register(void)
{
	BUILD_BUG_ON(sizeof(struct reno1990) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&reno1990);
}

module_init(reno1990_register);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Reno of 1990");
