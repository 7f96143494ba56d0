// SPDX-License-Identifier: GPL-2.0
/*
 * A link that follows a trace of delivery opportunities, packet for packet as Mahimahi's
 * mm-link does (Netravali et al., USENIX ATC 2015; src/frontend/link_queue.cc).
 *
 * Each opportunity is good for OPPORTUNITY bytes. Several packets may share one, a packet
 * may need a part of the next one, and what is left when the queue is empty is lost. What
 * arrives at the very time of an opportunity comes too late for it. The trace begins anew
 * at its last opportunity's time. Until the trace begins, packets pass at once.
 *
 * The packets wait in a child, which is any queue discipline.
 */
#include <linux/crc32.h>
#include <linux/if_ether.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#define OPPORTUNITY 1504 /* bytes: a packet of 1500, and the header that Mahimahi's tun adds */
#define TUN_HEADER 4
#define MOST_TIMES (1 << 22) /* 32 MB */

enum {
	TCA_TRACE_UNSPEC,
	TCA_TRACE_TIMES, /* to the kernel: struct trace_time, behind those that it has */
	TCA_TRACE_START, /* to the kernel: CLOCK_MONOTONIC in ns, when the trace begins */
	TCA_TRACE_NUMBER, /* from the kernel: of its times */
	TCA_TRACE_OPPORTUNITIES, /* from the kernel: at all its times */
	TCA_TRACE_PERIOD, /* from the kernel: ms */
	TCA_TRACE_CRC32, /* from the kernel: of its array of times */
	__TCA_TRACE_MAX,
};

#define TCA_TRACE_MAX (__TCA_TRACE_MAX - 1)

struct trace_time {
	u32 ms; /* since the trace began */
	u32 opportunities;
};

struct trace_xstats {
	u64 start_ns; /* 0: it has not begun */
	u64 used; /* opportunities that carried something */
};

struct trace_sched_data {
	struct trace_time *times;
	u32 number;

	u64 start_ns; /* of the first round; KTIME_MAX: never */
	u64 round_ns; /* of this round */
	u32 at; /* the time of the next opportunity */
	u32 gone; /* of the opportunities at that time */
	u32 owed; /* bytes that the child's first packet still needs */
	u64 used;

	struct Qdisc *child;
	struct qdisc_skb_head out; /* packets that have had their opportunities */
	struct qdisc_watchdog watchdog;
};

static u64 trace_next_ns(const struct trace_sched_data *q)
{
	return q->round_ns + (u64)q->times[q->at].ms * NSEC_PER_MSEC;
}

/* To the next opportunity, or past all of the same time. */
static void trace_advance(struct trace_sched_data *q, bool past_all)
{
	if (!past_all && ++q->gone < q->times[q->at].opportunities)
		return;
	q->gone = 0;
	if (++q->at < q->number)
		return;
	q->at = 0;
	q->round_ns += (u64)q->times[q->number - 1].ms * NSEC_PER_MSEC;
}

static void trace_use(struct trace_sched_data *q)
{
	u32 left = OPPORTUNITY;

	while (left) {
		struct sk_buff *skb = q->child->ops->peek(q->child);
		u32 part;

		if (!skb)
			break;
		if (!q->owed)
			q->owed = qdisc_pkt_len(skb) - ETH_HLEN + TUN_HEADER;
		part = min(left, q->owed);
		left -= part;
		q->owed -= part;
		if (q->owed)
			break;
		skb = qdisc_dequeue_peeked(q->child);
		if (skb)
			__qdisc_enqueue_tail(skb, &q->out);
	}
	q->used += left < OPPORTUNITY;
}

/* All opportunities until now: to be called before a packet joins the queue. */
static void trace_run(struct trace_sched_data *q, u64 now_ns)
{
	while (trace_next_ns(q) <= now_ns) {
		bool waiting = q->child->q.qlen;

		if (waiting)
			trace_use(q);
		trace_advance(q, !waiting);
	}
}

static int trace_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	u64 now_ns = ktime_get_ns();
	int ret;

	if (now_ns >= q->start_ns)
		trace_run(q, now_ns);
	ret = qdisc_enqueue(skb, q->child, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *trace_dequeue(struct Qdisc *sch)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	struct sk_buff *skb;

	if (now_ns >= q->start_ns) {
		trace_run(q, now_ns);
		skb = __qdisc_dequeue_head(&q->out);
	} else {
		skb = qdisc_dequeue_peeked(q->child);
	}
	if (skb) {
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (q->child->q.qlen && now_ns >= q->start_ns) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, trace_next_ns(q));
	}
	return NULL;
}

static void trace_reset(struct Qdisc *sch)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_reset(q->child);
	rtnl_kfree_skbs(q->out.head, q->out.tail);
	memset(&q->out, 0, sizeof(q->out));
	q->owed = 0;
}

static const struct nla_policy trace_policy[TCA_TRACE_MAX + 1] = {
	[TCA_TRACE_TIMES] = { .type = NLA_BINARY },
	[TCA_TRACE_START] = { .type = NLA_U64 },
};

/* More times behind those that are there: ever later ones, with an opportunity at least. */
static int trace_append(struct Qdisc *sch, const struct nlattr *attribute)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	u32 more = nla_len(attribute) / sizeof(struct trace_time);
	u32 number = q->number + more, i;
	struct trace_time *times;

	if (!more || nla_len(attribute) % sizeof(struct trace_time) || number > MOST_TIMES)
		return -EINVAL;
	if (q->start_ns != KTIME_MAX)
		return -EBUSY;
	times = kvmalloc_array(number, sizeof(*times), GFP_KERNEL);
	if (!times)
		return -ENOMEM;
	if (q->number)
		memcpy(times, q->times, q->number * sizeof(*times));
	memcpy(times + q->number, nla_data(attribute), more * sizeof(*times));
	for (i = q->number; i < number; i++) {
		if (times[i].opportunities && (!i || times[i].ms > times[i - 1].ms))
			continue;
		kvfree(times);
		return -EINVAL;
	}
	sch_tree_lock(sch);
	swap(times, q->times);
	q->number = number;
	sch_tree_unlock(sch);
	kvfree(times);
	return 0;
}

static int trace_begin(struct Qdisc *sch, u64 start_ns)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	if (!q->number || !q->times[q->number - 1].ms || start_ns >= KTIME_MAX)
		return -EINVAL;
	sch_tree_lock(sch);
	q->start_ns = start_ns;
	q->round_ns = start_ns;
	q->at = 0;
	q->gone = 0;
	q->owed = 0;
	q->used = 0;
	sch_tree_unlock(sch);
	return 0;
}

static int trace_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_TRACE_MAX + 1];
	int err;

	err = nla_parse_nested_deprecated(tb, TCA_TRACE_MAX, opt, trace_policy, extack);
	if (!err && tb[TCA_TRACE_TIMES])
		err = trace_append(sch, tb[TCA_TRACE_TIMES]);
	if (!err && tb[TCA_TRACE_START])
		err = trace_begin(sch, nla_get_u64(tb[TCA_TRACE_START]));
	return err;
}

static int trace_qdisc_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	q->start_ns = KTIME_MAX;
	return opt ? trace_change(sch, opt, extack) : 0;
}

static void trace_destroy(struct Qdisc *sch)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
	kvfree(q->times);
}

static int trace_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	u32 size = q->number * sizeof(*q->times), opportunities = 0, i;
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	for (i = 0; i < q->number; i++)
		opportunities += q->times[i].opportunities;
	if (!nest || nla_put_u32(skb, TCA_TRACE_NUMBER, q->number) ||
	    nla_put_u32(skb, TCA_TRACE_OPPORTUNITIES, opportunities) ||
	    nla_put_u32(skb, TCA_TRACE_PERIOD, q->number ? q->times[q->number - 1].ms : 0) ||
	    nla_put_u32(skb, TCA_TRACE_CRC32, ~crc32_le(~0, (u8 *)q->times, size))) {
		nla_nest_cancel(skb, nest);
		return -1;
	}
	return nla_nest_end(skb, nest);
}

static int trace_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	struct trace_xstats stats = {
		.start_ns = q->start_ns == KTIME_MAX ? 0 : q->start_ns,
		.used = q->used,
	};

	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static int trace_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			    struct tcmsg *tcm)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static int trace_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		       struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *trace_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long trace_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void trace_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops trace_class_ops = {
	.graft		= trace_graft,
	.leaf		= trace_leaf,
	.find		= trace_find,
	.walk		= trace_walk,
	.dump		= trace_dump_class,
};

static struct Qdisc_ops trace_qdisc_ops __read_mostly = {
	.cl_ops		= &trace_class_ops,
	.id		= "trace",
	.priv_size	= sizeof(struct trace_sched_data),
	.enqueue	= trace_enqueue,
	.dequeue	= trace_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= trace_qdisc_init,
	.reset		= trace_reset,
	.destroy	= trace_destroy,
	.change		= trace_change,
	.dump		= trace_dump,
	.dump_stats	= trace_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init trace_module_init(void)
{
	return register_qdisc(&trace_qdisc_ops);
}

static void __exit trace_module_exit(void)
{
	unregister_qdisc(&trace_qdisc_ops);
}

module_init(trace_module_init)
module_exit(trace_module_exit)
MODULE_LICENSE("GPL");
