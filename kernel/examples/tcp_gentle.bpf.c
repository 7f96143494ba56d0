// SPDX-License-Identifier: GPL-2.0
/* Reno that goes back by a quarter, not by half: an example of a congestion control in BPF. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("struct_ops/gentle_ssthresh")
__u32 BPF_PROG(gentle_ssthresh, struct sock *sk)
{
	__u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd * 3 / 4;

	return cwnd > 2 ? cwnd : 2;
}

SEC("struct_ops/gentle_cong_avoid")
void BPF_PROG(gentle_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/gentle_undo_cwnd")
__u32 BPF_PROG(gentle_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops gentle = {
	.ssthresh	= (void *)gentle_ssthresh,
	.cong_avoid	= (void *)gentle_cong_avoid,
	.undo_cwnd	= (void *)gentle_undo_cwnd,
	.name		= "gentle",
};

char _license[] SEC("license") = "GPL";
