/* IPv4, IPv6 and its extensions, and the packets that ICMP quotes. */
#include <endian.h>
#include <string.h>

#include "dissect.h"

enum { IP_HOP_OPTIONS = 0, IP_ICMP = 1, IP_IPV4 = 4, IP_TCP = 6, IP_UDP = 17, IP_IPV6 = 41,
       IP_ROUTING = 43, IP_FRAGMENT = 44, IP_GRE = 47, IP_AUTHENTICATION = 51, IP_ICMPV6 = 58,
       IP_NONE = 59, IP_DESTINATION_OPTIONS = 60, IP_UDP_LITE = 136, IP_MPLS = 137 };

#define MORE_FRAGMENTS	0x2000
#define FRAGMENT_OFFSET	0x1fff
#define IPV6_HEADER	40

static void dissect_protocol(struct core *, struct packet *, u8 protocol, struct slice,
			     u32 payload);

/* An error quotes the packet that it is about. */
static struct slice quoted_by_icmp(struct slice at)
{
	struct slice inner = rest(at, 8);
	u32 words = at.at[5];	/* RFC 4884: extensions begin behind so much */

	if (at.at[0] == 5)
		return trimmed(inner, (at.at[8] & 15) * 4 + 8);
	if (words && at.size > 8 + words * 4 && has(at, 10, 2) && be16(at.at + 10) > words * 4)
		return trimmed(inner, ((at.at[8] & 15) + words) * 4);
	return inner;
}

static void dissect_icmp(struct core *core, struct packet *packet, struct slice at)
{
	bool quoted = packet->quoted;
	struct slice inner;

	packet->icmp = true;
	if (!has(at, 0, 9))
		return;
	switch (at.at[0]) {
	case 3:		/* destination unreachable */
	case 4:		/* source quench */
	case 5:		/* redirect */
	case 11:	/* time exceeded */
	case 12:	/* parameter problem */
		inner = quoted_by_icmp(at);
		packet->quoted = true;
		dissect_ip(core, packet, inner);
		packet->quoted = quoted;
	}
}

static void dissect_icmpv6(struct core *core, struct packet *packet, struct slice at)
{
	bool quoted = packet->quoted;

	packet->icmp = true;
	if (!has(at, 0, 9) || at.at[0] < 1 || at.at[0] > 4 || at.at[8] >> 4 != 6)
		return;
	packet->quoted = true;
	dissect_ipv6(core, packet, rest(at, 8));
	packet->quoted = quoted;
}

/* IPv4 */

/* With a source route, the packet's destination is the route's last address. */
static u32 destination_offset(const u8 *options, u32 size)
{
	for (u32 at = 0; at < size && options[at];) {
		u8 kind = options[at], length;

		if (kind == 1) {
			at++;
			continue;
		}
		if (at + 1 >= size)
			return 0;
		length = options[at + 1];
		if (length < 2 || length > size - at)
			return 0;
		if (kind == 131 || kind == 137) {
			u8 pointer = length > 2 ? options[at + 2] : 0;

			return pointer < 4 || pointer & 3 || pointer > length ? 0 : at + length;
		}
		at += length;
	}
	return 0;
}

/* Wireshark reads no further than an option that is too short for its type. */
static bool has_short_option(const u8 *options, u32 size)
{
	static const u8 least[256] = {
		[7] = 3, [25] = 8, [68] = 4, [82] = 12, [130] = 3, [131] = 3, [133] = 3,
		[134] = 6, [136] = 4, [137] = 3, [148] = 4,
	};

	for (u32 at = 0; at + 1 < size && options[at];) {
		u8 length = options[at + 1];

		if (options[at] == 1) {
			at++;
			continue;
		}
		if (length < 2 || length > size - at)
			return false;
		if (length < least[options[at]])
			return true;
		at += length;
	}
	return false;
}

static void set_ipv4(struct address *address, const u8 *bytes)
{
	u32 word;

	memcpy(&word, bytes, 4);
	*address = (struct address){ { htole64(le32toh(word)) }, 4 };
}

static bool is_private(u32 address)
{
	return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8 ||
	       address >> 16 == 0xa9fe;
}

/* Networks of equal private addresses are told apart by their VLAN. */
static void fragment_key(struct fragment_key *key, const struct packet *packet, const u8 *header)
{
	u32 src = be32(header + 12), dst = be32((const u8 *)packet->dst.words);

	key->src = packet->src;
	key->dst = packet->dst;
	key->id = header[9] ^ be16(header + 4) ^ src ^ dst;
	if (is_private(src) || is_private(dst))
		key->id ^= packet->vlan;
}

static void dissect_ipv4(struct core *core, struct packet *packet, struct slice at)
{
	bool fragment = packet->fragment;
	struct fragment_key key;
	/* Two: a slice whose address is taken is kept in memory, written in halves and read back
	 * as a whole, which for each packet waits until all earlier stores have ended. */
	struct slice payload, whole;
	u32 header, total;
	u16 part;

	if (!has(at, 0, 20))
		return;
	header = (at.at[0] & 15) * 4;
	total = be16(at.at + 2);
	if (header < 20)
		return;
	if (!total)
		total = at.size;	/* segmentation was left to the network card */
	if (total < header)
		return;
	at = trimmed(at, total);
	if (!has(at, 0, header))
		return;
	packet->row->ecn = at.at[1] & 3;
	packet->row->ip_id = be16(at.at + 4);
	part = be16(at.at + 6);
	set_ipv4(&packet->src, at.at + 12);
	set_ipv4(&packet->dst, at.at + 16 + destination_offset(at.at + 20, header - 20));
	packet->next_hop.family = 0;
	if (has_short_option(at.at + 20, header - 20))
		return;
	payload = rest(at, header);
	if (part & (MORE_FRAGMENTS | FRAGMENT_OFFSET) && total > header &&
	    has(at, header, total - header)) {
		fragment_key(&key, packet, at.at);
		if (!fragments_add(core->fragments, &key, (part & FRAGMENT_OFFSET) * 8u, payload,
				   part & MORE_FRAGMENTS, &whole)) {
			packet->skipped.reason = READ;	/* it waits */
			return;
		}
		payload = whole;
	} else if (part & FRAGMENT_OFFSET) {
		return;
	} else {
		packet->fragment = part & MORE_FRAGMENTS;
	}
	if (payload.size)
		dissect_protocol(core, packet, at.at[9], payload, 0);
	packet->fragment = fragment;
}

/* Either version, by what the packet says. */
void dissect_ip(struct core *core, struct packet *packet, struct slice at)
{
	if (!has(at, 0, 1) || packet->depth++ >= MAX_DEPTH)
		return;
	if (at.at[0] >> 4 == 4)
		dissect_ipv4(core, packet, at);
	else if (at.at[0] >> 4 == 6)
		dissect_ipv6(core, packet, at);
}

/* IPv6.  `payload` is what is left of the payload length that its header told. */

static void set_ipv6(struct address *address, const u8 *bytes)
{
	address->family = 6;
	memcpy(address->words, bytes, 16);
}

/* A payload of more than 64 KB is told by an option. */
static u32 jumbo_payload(struct slice at)
{
	u32 end;

	if (!has(at, 0, 2))
		return 0;
	end = (at.at[1] + 1u) * 8;
	for (u32 i = 2; i < end && has(at, i, 6);) {
		u8 kind = at.at[i++], size;
		u32 told;

		if (!kind)
			continue;
		size = at.at[i++];
		if (kind == 0xc2 && size == 4) {
			told = be32(at.at + i);
			return told > UINT16_MAX ? told : 0;
		}
		i += size;
	}
	return 0;
}

void dissect_ipv6(struct core *core, struct packet *packet, struct slice at)
{
	bool fragment = packet->fragment;
	u32 told, payload;

	if (packet->depth++ >= MAX_DEPTH || !has(at, 0, IPV6_HEADER) || at.at[0] >> 4 != 6)
		return;
	packet->row->ecn = at.at[1] >> 4 & 3;
	packet->row->ip_id = -1;
	set_ipv6(&packet->src, at.at + 8);
	set_ipv6(&packet->dst, at.at + 24);
	packet->next_hop.family = 0;
	told = payload = be16(at.at + 4);
	if (!payload && at.at[6] == IP_HOP_OPTIONS)
		payload = jumbo_payload(rest(at, IPV6_HEADER));
	if (payload <= UINT32_MAX - IPV6_HEADER)
		at = trimmed(at, IPV6_HEADER + payload);
	dissect_protocol(core, packet, at.at[6], rest(at, IPV6_HEADER), told);
	packet->fragment = fragment;
}

static void dissect_extension(struct core *core, struct packet *packet, struct slice at,
			      u32 payload)
{
	u32 size;

	if (!has(at, 0, 2))
		return;
	size = (at.at[1] + 1u) * 8;
	if (has(at, 0, size))
		dissect_protocol(core, packet, at.at[0], rest(at, size), payload - size);
}

static void dissect_routing(struct core *core, struct packet *packet, struct slice at,
			    u32 payload)
{
	u32 addresses;

	if (!has(at, 0, 8))
		return;
	addresses = at.at[1] / 2;
	if (!at.at[2] && at.at[3] && addresses && has(at, 8, addresses * 16) &&
	    packet->dst.family == 6) {
		packet->next_hop = packet->dst;
		set_ipv6(&packet->dst, at.at + 8 + (addresses - 1) * 16);
	}
	dissect_extension(core, packet, at, payload);
}

static void dissect_fragment(struct core *core, struct packet *packet, struct slice at,
			     u32 payload)
{
	struct fragment_key key;
	struct slice data;
	u16 part;

	if (!has(at, 0, 8))
		return;
	part = be16(at.at + 2);
	data = rest(at, 8);
	payload -= 8;
	if ((s32)payload > 0 && part & 0xfff9) {
		packet->fragment = true;
		if (!has(data, 0, payload))
			return;
		key = (struct fragment_key){ packet->src, packet->dst, be32(at.at + 4) };
		if (!fragments_add(core->fragments, &key, part & 0xfff8, trimmed(data, payload),
				   part & 1, &data)) {
			packet->skipped.reason = READ;
			return;
		}
		packet->fragment = false;
		payload = 0;
	}
	dissect_protocol(core, packet, at.at[0], data, payload);
}

static void dissect_authentication(struct core *core, struct packet *packet, struct slice at,
				   u32 payload)
{
	u32 size;

	if (!has(at, 0, 2))
		return;
	size = (at.at[1] + 2u) * 4;
	if (has(at, 0, size))
		dissect_protocol(core, packet, at.at[0], rest(at, size), payload - size);
}

static void dissect_protocol(struct core *core, struct packet *packet, u8 protocol,
			     struct slice at, u32 payload)
{
	if (packet->depth++ >= MAX_DEPTH)
		return;
	switch (protocol) {
	case IP_TCP:
		dissect_tcp(core, packet, at);
		break;
	case IP_UDP:
	case IP_UDP_LITE:
		dissect_udp(core, packet, at, protocol == IP_UDP_LITE);
		break;
	case IP_ICMP:
		dissect_icmp(core, packet, at);
		break;
	case IP_ICMPV6:
		dissect_icmpv6(core, packet, at);
		break;
	case IP_IPV4:
		dissect_ip(core, packet, at);
		break;
	case IP_IPV6:
		dissect_ipv6(core, packet, at);
		break;
	case IP_HOP_OPTIONS:
	case IP_DESTINATION_OPTIONS:
		dissect_extension(core, packet, at, payload);
		break;
	case IP_ROUTING:
		dissect_routing(core, packet, at, payload);
		break;
	case IP_FRAGMENT:
		dissect_fragment(core, packet, at, payload);
		break;
	case IP_AUTHENTICATION:
		dissect_authentication(core, packet, at, payload);
		break;
	case IP_GRE:
		dissect_gre(core, packet, at);
		break;
	case IP_MPLS:
		dissect_mpls(core, packet, at);
		break;
	default:
		ended(packet, IP_PROTOCOL, protocol);
	}
}
