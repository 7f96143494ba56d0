// SPDX-License-Identifier: GPL-2.0
/*
 * NewReno, the Impatient variant: RFC 3782, section 4.
 *
 * In the Slow-but-Steady variant (tcp_newreno.c) every partial ACK restarts the
 * retransmit timer, so that a window with many losses is mended at one segment a round
 * trip. Here only the first partial ACK of a recovery does; a recovery that lasts longer
 * than a retransmit timeout after it ends in slow start. All else is the same. It needs
 * SACK, RACK and F-RTO off (`testbed check --variants` has the recipe).
 */

#include <linux/module.h>
#include <net/tcp.h>

struct impatient {
	unsigned long timeout;	/* when the timer was to fire, before this ACK */
	u32 snd_una;		/* as the ACK before this one left it */
	bool partial;		/* this recovery has had a partial ACK */
};

static void impatient_init(struct sock *sk)
{
	struct impatient *ca = inet_csk_ca(sk);

	ca->snd_una = tcp_sk(sk)->snd_una;
	ca->partial = false;
}

/* An ACK opens the window by one segment, however many it covers. */
static void impatient_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, 1);
}

/* Recovery has brought the flight down to ssthresh: half of that is half of the flight. */
static void impatient_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state == TCP_CA_Loss && inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		tp->snd_ssthresh = max(tp->snd_ssthresh >> 1, 2U);
}

/* Runs before the kernel restarts the timer … */
static void impatient_in_ack_event(struct sock *sk, u32 flags)
{
	struct impatient *ca = inet_csk_ca(sk);

	ca->timeout = inet_csk(sk)->icsk_timeout;
}

/* … and this after everything: the last word on the timer. */
static void impatient_ack_done(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct impatient *ca = inet_csk_ca(sk);
	bool advanced = tcp_sk(sk)->snd_una != ca->snd_una;

	ca->snd_una = tcp_sk(sk)->snd_una;
	if (icsk->icsk_ca_state != TCP_CA_Recovery) {
		ca->partial = false;
	} else if (advanced) {
		if (ca->partial && icsk->icsk_pending == ICSK_TIME_RETRANS) {
			long left = ca->timeout - jiffies;

			inet_csk_reset_xmit_timer(sk, ICSK_TIME_RETRANS,
						  max(left, 1L), TCP_RTO_MAX);
		}
		ca->partial = true;
	}
}

static struct tcp_congestion_ops impatient __read_mostly = {
	.name		= "impatient",
	.owner		= THIS_MODULE,
	.init		= impatient_init,
	.set_state	= impatient_set_state,
	.in_ack_event	= impatient_in_ack_event,
	.ack_done	= impatient_ack_done,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= impatient_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init impatient_register(void)
{
	BUILD_BUG_ON(sizeof(struct impatient) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&impatient);
}

module_init(impatient_register);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("NewReno, the Impatient variant");
