// SPDX-License-Identifier: GPL-2.0
/*
 * A link that sends packets one after the other: each leaves when its last bit does, its size over
 * the rate after the later of its arrival and the end of the packet before.
 *
 * A link that aggregates, as radios and cable modems do, takes several packets that wait at once,
 * and sends them as one: all leave when the last bit of the last one does.
 *
 * The packets wait in a child, which is any queue discipline. A packet that is being sent is in the
 * child no longer: the child's limit and backlog are of those that wait.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

enum {
	TCA_LINK_UNSPEC,
	TCA_LINK_RATE, /* u64: bits per second */
	TCA_LINK_PACKETS, /* u32: how many are sent as one, at most */
	TCA_LINK_TIME, /* u32: nanoseconds after which none is added to them; 0: no limit */
	__TCA_LINK_MAX,
};

#define TCA_LINK_MAX (__TCA_LINK_MAX - 1)

struct link_sched_data {
	u64 rate; /* bits per second */
	u32 packets; /* how many are sent as one, at most */
	u32 time_ns; /* after which none is added; 0: no limit */
	struct sk_buff *sending;
	struct sk_buff *leaving; /* what has been sent */
	u64 free_ns; /* when what is being sent has left */
	u64 rest; /* what free_ns lacks, in parts of a nanosecond of which there are `rate` */

	struct Qdisc *child;
	struct qdisc_watchdog watchdog;
};

/* Begin to send the child's next packets, behind those before or, on an idle link, now. */
static void link_send(struct link_sched_data *q, bool idle)
{
	struct sk_buff **end = &q->sending;
	u32 room = q->packets;
	u64 parts, until_ns;

	*end = q->child->dequeue(q->child);
	if (!*end)
		return;
	if (idle) {
		q->free_ns = ktime_get_ns();
		q->rest = 0;
	}
	until_ns = q->time_ns ? q->free_ns + q->time_ns : U64_MAX;
	do {
		parts = (u64)qdisc_pkt_len(*end) * BITS_PER_BYTE * NSEC_PER_SEC + q->rest;
		q->free_ns += div64_u64_rem(parts, q->rate, &q->rest);
		end = &(*end)->next;
		*end = NULL;
		if (!--room || q->free_ns >= until_ns)
			break;
		*end = q->child->dequeue(q->child);
	} while (*end);
}

static int link_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct link_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, q->child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *link_dequeue(struct Qdisc *sch)
{
	struct link_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (!q->leaving) {
		if (!q->sending)
			link_send(q, true);
		if (!q->sending)
			return NULL;
		if (ktime_get_ns() < q->free_ns) {
			qdisc_watchdog_schedule_ns(&q->watchdog, q->free_ns);
			return NULL;
		}
		q->leaving = q->sending;
		link_send(q, false);
	}
	skb = q->leaving;
	q->leaving = skb->next;
	skb_mark_not_on_list(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void link_forget(struct sk_buff **list)
{
	struct sk_buff *last = *list;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	rtnl_kfree_skbs(*list, last);
	*list = NULL;
}

static void link_reset(struct Qdisc *sch)
{
	struct link_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_reset(q->child);
	link_forget(&q->sending);
	link_forget(&q->leaving);
}

static const struct nla_policy link_policy[TCA_LINK_MAX + 1] = {
	[TCA_LINK_RATE] = { .type = NLA_U64 },
	[TCA_LINK_PACKETS] = { .type = NLA_U32 },
	[TCA_LINK_TIME] = { .type = NLA_U32 },
};

/* A packet that is being sent leaves at the rate before. */
static int link_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct link_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_LINK_MAX + 1];
	int err;

	err = nla_parse_nested_deprecated(tb, TCA_LINK_MAX, opt, link_policy, extack);
	if (err)
		return err;
	if (!tb[TCA_LINK_RATE] || !nla_get_u64(tb[TCA_LINK_RATE])) {
		NL_SET_ERR_MSG(extack, "a link needs a rate");
		return -EINVAL;
	}
	sch_tree_lock(sch);
	q->rate = nla_get_u64(tb[TCA_LINK_RATE]);
	q->packets = tb[TCA_LINK_PACKETS] ? max(1U, nla_get_u32(tb[TCA_LINK_PACKETS])) : 1;
	q->time_ns = tb[TCA_LINK_TIME] ? nla_get_u32(tb[TCA_LINK_TIME]) : 0;
	q->rest = 0;
	sch_tree_unlock(sch);
	return 0;
}

static int link_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct link_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	if (opt)
		return link_change(sch, opt, extack);
	NL_SET_ERR_MSG(extack, "a link needs a rate");
	return -EINVAL;
}

static void link_destroy(struct Qdisc *sch)
{
	struct link_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
}

static int link_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct link_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest || nla_put_u64_64bit(skb, TCA_LINK_RATE, q->rate, TCA_LINK_UNSPEC) ||
	    nla_put_u32(skb, TCA_LINK_PACKETS, q->packets) ||
	    nla_put_u32(skb, TCA_LINK_TIME, q->time_ns)) {
		nla_nest_cancel(skb, nest);
		return -1;
	}
	return nla_nest_end(skb, nest);
}

static int link_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			   struct tcmsg *tcm)
{
	struct link_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static int link_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new, struct Qdisc **old,
		      struct netlink_ext_ack *extack)
{
	struct link_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *link_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct link_sched_data *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long link_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void link_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops link_class_ops = {
	.graft		= link_graft,
	.leaf		= link_leaf,
	.find		= link_find,
	.walk		= link_walk,
	.dump		= link_dump_class,
};

static struct Qdisc_ops link_qdisc_ops __read_mostly = {
	.cl_ops		= &link_class_ops,
	.id		= "link",
	.priv_size	= sizeof(struct link_sched_data),
	.enqueue	= link_enqueue,
	.dequeue	= link_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= link_init,
	.reset		= link_reset,
	.destroy	= link_destroy,
	.change		= link_change,
	.dump		= link_dump,
	.owner		= THIS_MODULE,
};

static int __init link_module_init(void)
{
	return register_qdisc(&link_qdisc_ops);
}

static void __exit link_module_exit(void)
{
	unregister_qdisc(&link_qdisc_ops);
}

module_init(link_module_init)
module_exit(link_module_exit)
MODULE_LICENSE("GPL");
