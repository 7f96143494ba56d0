// SPDX-License-Identifier: GPL-2.0
/*
 * A machine that receives: its network card holds the interrupt back for a time after a packet has
 * come (ethtool's rx-usecs), its processor takes a time to wake up, and one for each packet. Until
 * nothing waits any more it goes on without another interrupt, as NAPI does.
 *
 * The times to wake up and of packets are drawn, uniformly from 0 to twice their mean.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

enum {
	TCA_RECEIVE_UNSPEC,
	TCA_RECEIVE_HOLD, /* u32: nanoseconds from a packet to the interrupt */
	TCA_RECEIVE_COST, /* u32: nanoseconds that a packet takes, in the mean */
	TCA_RECEIVE_WAKE, /* u32: nanoseconds from the interrupt to the first packet, in the mean */
	__TCA_RECEIVE_MAX,
};

#define TCA_RECEIVE_MAX (__TCA_RECEIVE_MAX - 1)

struct receive_sched_data {
	u32 hold_ns;
	u32 cost_ns;
	u32 wake_ns;
	u64 due_ns; /* when the first packet that waits goes on */

	struct qdisc_watchdog watchdog;
};

static u64 receive_draw(u32 mean_ns)
{
	return mean_ns ? reciprocal_scale(get_random_u32(), 2 * mean_ns + 1) : 0;
}

static int receive_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct receive_sched_data *q = qdisc_priv(sch);

	if (!sch->q.qlen)
		q->due_ns = ktime_get_ns() + q->hold_ns + receive_draw(q->wake_ns) +
			    receive_draw(q->cost_ns);
	return qdisc_enqueue_tail(skb, sch);
}

static struct sk_buff *receive_dequeue(struct Qdisc *sch)
{
	struct receive_sched_data *q = qdisc_priv(sch);

	if (!sch->q.qlen)
		return NULL;
	if (ktime_get_ns() < q->due_ns) {
		qdisc_watchdog_schedule_ns(&q->watchdog, q->due_ns);
		return NULL;
	}
	q->due_ns += receive_draw(q->cost_ns);
	return qdisc_dequeue_head(sch);
}

static void receive_reset(struct Qdisc *sch)
{
	struct receive_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_reset_queue(sch);
}

static const struct nla_policy receive_policy[TCA_RECEIVE_MAX + 1] = {
	[TCA_RECEIVE_HOLD] = { .type = NLA_U32 },
	[TCA_RECEIVE_COST] = { .type = NLA_U32 },
	[TCA_RECEIVE_WAKE] = { .type = NLA_U32 },
};

static int receive_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct receive_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_RECEIVE_MAX + 1];
	int err;

	qdisc_watchdog_init(&q->watchdog, sch);
	if (!opt)
		return -EINVAL;
	err = nla_parse_nested_deprecated(tb, TCA_RECEIVE_MAX, opt, receive_policy, extack);
	if (err)
		return err;
	if (!tb[TCA_RECEIVE_HOLD] || !tb[TCA_RECEIVE_COST] || !tb[TCA_RECEIVE_WAKE]) {
		NL_SET_ERR_MSG(extack, "a receiver needs a hold, a cost and a time to wake up");
		return -EINVAL;
	}
	q->hold_ns = nla_get_u32(tb[TCA_RECEIVE_HOLD]);
	q->cost_ns = nla_get_u32(tb[TCA_RECEIVE_COST]);
	q->wake_ns = nla_get_u32(tb[TCA_RECEIVE_WAKE]);
	return 0;
}

static void receive_destroy(struct Qdisc *sch)
{
	struct receive_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
}

static int receive_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct receive_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest || nla_put_u32(skb, TCA_RECEIVE_HOLD, q->hold_ns) ||
	    nla_put_u32(skb, TCA_RECEIVE_COST, q->cost_ns) ||
	    nla_put_u32(skb, TCA_RECEIVE_WAKE, q->wake_ns)) {
		nla_nest_cancel(skb, nest);
		return -1;
	}
	return nla_nest_end(skb, nest);
}

static struct Qdisc_ops receive_qdisc_ops __read_mostly = {
	.id		= "receive",
	.priv_size	= sizeof(struct receive_sched_data),
	.enqueue	= receive_enqueue,
	.dequeue	= receive_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= receive_init,
	.reset		= receive_reset,
	.destroy	= receive_destroy,
	.dump		= receive_dump,
	.owner		= THIS_MODULE,
};

static int __init receive_module_init(void)
{
	return register_qdisc(&receive_qdisc_ops);
}

static void __exit receive_module_exit(void)
{
	unregister_qdisc(&receive_qdisc_ops);
}

module_init(receive_module_init)
module_exit(receive_module_exit)
MODULE_LICENSE("GPL");
