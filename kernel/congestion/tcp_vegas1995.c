// SPDX-License-Identifier: GPL-2.0
/*
 * TCP Vegas as its authors have it: L. Brakmo, L. Peterson, "TCP Vegas: end to end
 * congestion avoidance on a global Internet", IEEE JSAC 13 (8), 1995; in the details
 * that the paper leaves open, as ns-2 (tcp/tcp-vegas.cc).
 *
 * Linux's own differs in what counts here. It judges by the least round trip of a window
 * (so that one packet that found the queue empty says that nothing waits); this one by
 * the mean of them. It halves the window on a loss; this one takes a quarter off, and
 * half only at a timeout. It doubles the window each round trip in slow start; this one
 * every other. Losses are found by duplicate ACKs and Linux's timer, not by Vegas's own
 * fine-grained one. It needs SACK, RACK and F-RTO off.
 */

#include <linux/module.h>
#include <net/tcp.h>

static int alpha = 1;
static int beta = 3;
static int gamma = 1;

module_param(alpha, int, 0644);
MODULE_PARM_DESC(alpha, "the window grows while fewer packets than this are queued");
module_param(beta, int, 0644);
MODULE_PARM_DESC(beta, "the window shrinks while more packets than this are queued");
module_param(gamma, int, 0644);
MODULE_PARM_DESC(gamma, "slow start ends when more packets than this are queued");

struct vegas1995 {
	u32 round_end;		/* snd_nxt when this round trip began */
	u32 base_us;		/* the least round trip ever */
	u64 sum_us;		/* of this round trip's samples */
	u32 samples;
	bool growing;		/* slow start: every other round trip */
};

static void vegas1995_init(struct sock *sk)
{
	struct vegas1995 *ca = inet_csk_ca(sk);

	ca->round_end = tcp_sk(sk)->snd_nxt;
	ca->base_us = U32_MAX;
	ca->sum_us = 0;
	ca->samples = 0;
	ca->growing = true;
}

static void vegas1995_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct vegas1995 *ca = inet_csk_ca(sk);

	if (sample->rtt_us <= 0)
		return;
	ca->base_us = min_t(u32, ca->base_us, sample->rtt_us);
	ca->sum_us += sample->rtt_us;
	ca->samples++;
}

/* A quarter off; for the retransmit timer see below. */
static u32 vegas1995_ssthresh(struct sock *sk)
{
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	return max(window - (window >> 2), 2U);
}

/* A timeout halves; one that ends a recovery halves what the recovery has left. */
static void vegas1995_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 before = inet_csk(sk)->icsk_ca_state;

	if (state == TCP_CA_Loss && before != TCP_CA_Loss)
		tp->snd_ssthresh = max((before == TCP_CA_Recovery ?
					tp->snd_ssthresh : tp->prior_cwnd) >> 1, 2U);
}

/* Segments of the window that wait in queues: window * (1 - base / rtt), rounded. */
static u32 vegas1995_queued(struct vegas1995 *ca, u32 window)
{
	u64 rtt = ca->sum_us;

	do_div(rtt, ca->samples);
	return DIV_ROUND_CLOSEST_ULL(window * (rtt - ca->base_us), (u32)rtt);
}

static void vegas1995_slow_start(struct tcp_sock *tp, struct vegas1995 *ca, u32 queued)
{
	u32 window = tcp_snd_cwnd(tp);

	ca->growing = !ca->growing;
	if (ca->growing && (int)queued > gamma) {
		tcp_snd_cwnd_set(tp, max(window - (window >> 3), 2U));
		tp->snd_ssthresh = 2;
	}
}

static void vegas1995_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas1995 *ca = inet_csk_ca(sk);
	u32 window = tcp_snd_cwnd(tp), queued;

	if (after(ack, ca->round_end) && ca->samples) {
		queued = vegas1995_queued(ca, window);
		ca->round_end = tp->snd_nxt;
		ca->sum_us = 0;
		ca->samples = 0;
		if (tcp_in_slow_start(tp))
			vegas1995_slow_start(tp, ca, queued);
		else if ((int)queued > beta)
			tcp_snd_cwnd_set(tp, max(window - 1, 2U));
		else if ((int)queued < alpha && tcp_is_cwnd_limited(sk))
			tcp_snd_cwnd_set(tp, min(window + 1, tp->snd_cwnd_clamp));
	}
	if (tcp_in_slow_start(tp) && ca->growing && tcp_is_cwnd_limited(sk))
		tcp_slow_start(tp, 1);
}

static struct tcp_congestion_ops vegas1995 __read_mostly = {
	.name		= "vegas1995",
	.owner		= THIS_MODULE,
	.init		= vegas1995_init,
	.pkts_acked	= vegas1995_pkts_acked,
	.set_state	= vegas1995_set_state,
	.ssthresh	= vegas1995_ssthresh,
	.cong_avoid	= vegas1995_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init vegas1995_register(void)
{
	BUILD_BUG_ON(sizeof(struct vegas1995) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&vegas1995);
}

module_init(vegas1995_register);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Vegas of 1995");
