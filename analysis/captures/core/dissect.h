/*
 * What the files that dissect headers share. Each function takes a header at the start of its
 * slice and goes on with what it carries.
 */
#ifndef DISSECT_H
#define DISSECT_H

#include "core.h"

#define MAX_DEPTH	64	/* headers within headers: tunnels, tags, extensions */

enum { ETHERTYPE_IP = 0x0800, ETHERTYPE_VLAN = 0x8100, ETHERTYPE_IPV6 = 0x86dd,
       ETHERTYPE_BRIDGING = 0x6558, ETHERTYPE_PPP = 0x880b, ETHERTYPE_MPLS = 0x8847,
       ETHERTYPE_MPLS_MULTICAST = 0x8848, ETHERTYPE_PPPOE_SESSION = 0x8864,
       ETHERTYPE_PROVIDER = 0x88a8, ETHERTYPE_QINQ = 0x9100 };

/* links.c */
void dissect_link(struct core *, struct packet *, u32 link, struct slice);
void dissect_type(struct core *, struct packet *, u16 type, struct slice);
void dissect_serial(struct core *, struct packet *, struct slice);
void dissect_ethernet(struct core *, struct packet *, struct slice);

/* tunnels.c */
void dissect_mpls(struct core *, struct packet *, struct slice);
void dissect_gre(struct core *, struct packet *, struct slice);

/* ip.c */
void dissect_ip(struct core *, struct packet *, struct slice);
void dissect_ipv6(struct core *, struct packet *, struct slice);

/* udp.c */
void dissect_udp(struct core *, struct packet *, struct slice, bool lite);

/* The frame is not read further, for this reason. */
static inline void ended(struct packet *packet, u32 why, u32 number)
{
	packet->skipped = (struct skip){ why, number };
}

#endif
