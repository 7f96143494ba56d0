/*
 * A frame's headers, from the link layer down to TCP or UDP.
 *
 * Where a header is not whole, the dissection ends, as Wireshark's does; what was learnt
 * before stays.
 */
#include <math.h>
#include <string.h>

#include "core.h"

#define MAX_DEPTH	64	/* headers within headers: tunnels, tags, extensions */
#define MAX_LENGTH_FIELD 1500	/* an Ethernet type field up to it is a length */

enum link {
	LINK_NULL = 0, LINK_ETHERNET = 1, LINK_PPP = 9, LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14, LINK_PPP_SERIAL = 50, LINK_PPP_ETHER = 51, LINK_RAW = 101,
	LINK_CISCO_HDLC = 104, LINK_LOOP = 108, LINK_COOKED = 113, LINK_PPP_DIRECTION = 204,
	LINK_IPV4 = 228, LINK_IPV6 = 229, LINK_NFLOG = 239, LINK_COOKED_2 = 276,
};

enum { ETHERTYPE_IP = 0x0800, ETHERTYPE_VLAN = 0x8100, ETHERTYPE_IPV6 = 0x86dd,
       ETHERTYPE_BRIDGING = 0x6558, ETHERTYPE_PPP = 0x880b, ETHERTYPE_MPLS = 0x8847,
       ETHERTYPE_MPLS_MULTICAST = 0x8848, ETHERTYPE_PPPOE_SESSION = 0x8864,
       ETHERTYPE_PROVIDER = 0x88a8, ETHERTYPE_QINQ = 0x9100 };

enum { PPP_IP = 0x21, PPP_IPV6 = 0x57, PPP_MPLS = 0x281, PPP_MPLS_MULTICAST = 0x283 };
enum { PORT_GTP = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081 };
enum { NFLOG_IPV4 = 2, NFLOG_IPV6 = 10, NFLOG_PAYLOAD = 9 };

enum { IP_HOP_OPTIONS = 0, IP_ICMP = 1, IP_IPV4 = 4, IP_TCP = 6, IP_UDP = 17, IP_IPV6 = 41,
       IP_ROUTING = 43, IP_FRAGMENT = 44, IP_GRE = 47, IP_AUTHENTICATION = 51, IP_ICMPV6 = 58,
       IP_NONE = 59, IP_DESTINATION_OPTIONS = 60, IP_UDP_LITE = 136, IP_MPLS = 137 };

#define MORE_FRAGMENTS	0x2000
#define FRAGMENT_OFFSET	0x1fff
#define IPV6_HEADER	40

static void dissect_ip(struct core *, struct packet *, struct slice);
static void dissect_ipv6(struct core *, struct packet *, struct slice);
static void dissect_protocol(struct core *, struct packet *, u8 protocol, struct slice,
			     u32 payload);
static void dissect_ethernet(struct core *, struct packet *, struct slice);
static void dissect_gre(struct core *, struct packet *, struct slice);
static void dissect_mpls(struct core *, struct packet *, struct slice);
static void dissect_serial(struct core *, struct packet *, struct slice);
static void dissect_type(struct core *, struct packet *, u16 type, struct slice);

static void ended(struct packet *packet, u32 why, u32 number)
{
	packet->unread = (struct reason){ why, number };
}

/* Tunnels over UDP. */

static void dissect_vxlan(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 8))
		dissect_ethernet(core, packet, rest(at, 8));
}

static void dissect_geneve(struct core *core, struct packet *packet, struct slice at)
{
	u32 header;
	u16 type;

	if (!has(at, 0, 8))
		return;
	header = 8 + (at.at[0] & 0x3f) * 4u;
	if (!has(at, 0, header))
		return;
	type = be16(at.at + 2);
	if (type == ETHERTYPE_BRIDGING)
		dissect_ethernet(core, packet, rest(at, header));
	else
		dissect_type(core, packet, type, rest(at, header));
}

/* What a tunnel carries is told in the place of the tunnel's own packet, if it is TCP or UDP. */
static void dissect_tunnel(struct core *core, struct packet *packet, u16 port, struct slice at)
{
	struct packet outer = *packet;

	packet->is_row = false;
	packet->unread.why = BROKEN;
	if (port == PORT_VXLAN)
		dissect_vxlan(core, packet, at);
	else
		dissect_geneve(core, packet, at);
	if (packet->is_row || packet->icmp)
		return;
	*packet = outer;
}

static void dissect_udp_payload(struct core *core, struct packet *packet, struct slice at)
{
	const u16 ports[] = { packet->row.src_port, packet->row.dst_port };

	for (int i = 0; i < 2 && at.size; i++) {
		if (ports[i] != PORT_VXLAN && ports[i] != PORT_GENEVE && ports[i] != PORT_GTP)
			continue;
		if (core->tunnels && ports[i] != PORT_GTP)
			dissect_tunnel(core, packet, ports[i], at);
		else
			ended(packet, TUNNEL, ports[i]);
		return;
	}
}

static void dissect_udp(struct core *core, struct packet *packet, struct slice at, bool lite)
{
	struct row *row = &packet->row;
	struct connection *found;
	bool is_new;
	u32 size;

	packet->is_row = false;
	ended(packet, lite ? READ : BROKEN, 0);
	if (!has(at, 0, 6))
		return;
	size = be16(at.at + 4);
	if (lite || (!size && packet->src.family == 6))
		size = at.size;
	if (size < 8 && !lite)
		return;
	if (!has(at, 6, 2))
		return;
	*row = (struct row){ .time_ns = row->time_ns, .frame = row->frame,
			     .length = row->length, .ip_id = row->ip_id, .ecn = row->ecn };
	row->src_port = be16(at.at);
	row->dst_port = be16(at.at + 2);
	row->protocol = UDP;
	found = connect_packet(core, packet, UDP, row->src_port, row->dst_port, false, &is_new);
	if (!found)
		return;
	row->stream = found->stream;
	row->payload = (s32)size - 8;
	packet->is_row = !lite;
	packet->unread.why = READ;
	if (!lite && !packet->fragment && !packet->quoted)
		dissect_udp_payload(core, packet, rest(trimmed(at, size), 8));
}

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
	*address = (struct address){ .family = 4 };
	memcpy(address->bytes, bytes, 4);
}

static bool is_private(u32 address)
{
	return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8 ||
	       address >> 16 == 0xa9fe;
}

/* Networks of equal private addresses are told apart by their VLAN. */
static void fragment_key(struct fragment_key *key, const struct packet *packet, const u8 *header)
{
	u32 src = be32(header + 12), dst = be32(packet->dst.bytes);

	memset(key, 0, sizeof(*key));
	key->src = packet->src;
	key->dst = packet->dst;
	key->version = 4;
	key->id = header[9] ^ be16(header + 4) ^ src ^ dst;
	if (is_private(src) || is_private(dst))
		key->id ^= packet->vlan;
}

static void dissect_ipv4(struct core *core, struct packet *packet, struct slice at)
{
	bool fragment = packet->fragment;
	struct fragment_key key;
	struct slice payload;
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
	packet->row.ecn = at.at[1] & 3;
	packet->row.ip_id = be16(at.at + 4);
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
				   part & MORE_FRAGMENTS, &payload)) {
			packet->unread.why = READ;	/* it waits */
			return;
		}
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
static void dissect_ip(struct core *core, struct packet *packet, struct slice at)
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
	memcpy(address->bytes, bytes, 16);
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

static void dissect_ipv6(struct core *core, struct packet *packet, struct slice at)
{
	bool fragment = packet->fragment;
	u32 told, payload;

	if (packet->depth++ >= MAX_DEPTH || !has(at, 0, IPV6_HEADER) || at.at[0] >> 4 != 6)
		return;
	packet->row.ecn = at.at[1] >> 4 & 3;
	packet->row.ip_id = -1;
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
		memset(&key, 0, sizeof(key));
		key.src = packet->src;
		key.dst = packet->dst;
		key.version = 6;
		key.id = be32(at.at + 4);
		if (!fragments_add(core->fragments, &key, part & 0xfff8, trimmed(data, payload),
				   part & 1, &data)) {
			packet->unread.why = READ;
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

/* Labels, the last of which says so; what follows is told by its first bits. */
static void dissect_mpls(struct core *core, struct packet *packet, struct slice at)
{
	u32 label;

	do {
		if (!has(at, 0, 4))
			return;
		label = be32(at.at);
		at = rest(at, 4);
	} while (!(label & 0x100));
	if (has(at, 0, 1) && at.at[0] >> 4 != 4 && at.at[0] >> 4 != 6)
		ended(packet, ETHERTYPE, ETHERTYPE_MPLS);
	else
		dissect_ip(core, packet, at);
}

/* The protocol's number may be of one byte, the last of a number being odd. */
static void dissect_ppp(struct core *core, struct packet *packet, struct slice at)
{
	u32 protocol, size;

	if (!has(at, 0, 1))
		return;
	size = at.at[0] & 1 ? 1 : 2;
	if (!has(at, 0, size))
		return;
	protocol = size == 1 ? at.at[0] : be16(at.at);
	at = rest(at, size);
	switch (protocol) {
	case PPP_IP:
		dissect_ip(core, packet, at);
		break;
	case PPP_IPV6:
		dissect_ipv6(core, packet, at);
		break;
	case PPP_MPLS:
	case PPP_MPLS_MULTICAST:
		dissect_mpls(core, packet, at);
		break;
	default:
		ended(packet, PPP_PROTOCOL, protocol);
	}
}

static u32 gre_header(struct slice at, u16 flags)
{
	u32 size = 4 + (flags & 0xc000 ? 4 : 0) + (flags & 0x2000 ? 4 : 0) +
		   (flags & 0x1000 ? 4 : 0) + (flags & 0x0080 ? 4 : 0);

	while (flags & 0x4000) {	/* routes, the last of which is empty */
		u32 length;

		if (!has(at, size, 4))
			return UINT32_MAX;
		length = at.at[size + 3];
		size += 4;
		if (!length)
			break;
		size += length;
	}
	return size;
}

static void dissect_gre(struct core *core, struct packet *packet, struct slice at)
{
	u32 header;
	u16 type;

	if (!has(at, 0, 4))
		return;
	type = be16(at.at + 2);
	header = gre_header(at, be16(at.at));
	if (!has(at, 0, header))
		return;
	at = rest(at, header);
	switch (type) {
	case ETHERTYPE_IP:
	case ETHERTYPE_IPV6:
	case ETHERTYPE_MPLS:
	case ETHERTYPE_MPLS_MULTICAST:
		dissect_type(core, packet, type, at);
		break;
	case ETHERTYPE_BRIDGING:
		dissect_ethernet(core, packet, at);
		break;
	case ETHERTYPE_PPP:
		if (at.size)	/* or it only acknowledges */
			dissect_serial(core, packet, at);
		else
			packet->unread.why = READ;
		break;
	default:
		ended(packet, ETHERTYPE, type);
	}
}

/* Link layers. */

static void dissect_pppoe(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 6) && !at.at[1])
		dissect_ppp(core, packet, trimmed(rest(at, 6), be16(at.at + 4)));
}

static void dissect_type(struct core *core, struct packet *packet, u16 type, struct slice at)
{
	if (packet->depth++ >= MAX_DEPTH)
		return;
	switch (type) {
	case ETHERTYPE_IP:
		dissect_ip(core, packet, at);
		break;
	case ETHERTYPE_IPV6:
		dissect_ipv6(core, packet, at);
		break;
	case ETHERTYPE_VLAN:
	case ETHERTYPE_QINQ:
	case ETHERTYPE_PROVIDER:
		if (!has(at, 0, 4))
			return;
		if (type != ETHERTYPE_PROVIDER)
			packet->vlan = be16(at.at) & 0xfff;
		dissect_type(core, packet, be16(at.at + 2), rest(at, 4));
		break;
	case ETHERTYPE_MPLS:
	case ETHERTYPE_MPLS_MULTICAST:
		dissect_mpls(core, packet, at);
		break;
	case ETHERTYPE_PPPOE_SESSION:
		dissect_pppoe(core, packet, at);
		break;
	default:
		/* IEEE 802.3 with SNAP: it holds an Ethernet type */
		if (type <= MAX_LENGTH_FIELD && has(at, 0, 8) &&
		    !memcmp(at.at, "\xaa\xaa\x03\0\0\0", 6))
			dissect_type(core, packet, be16(at.at + 6),
				     rest(type ? trimmed(at, type) : at, 8));
		else
			ended(packet, ETHERTYPE, type > MAX_LENGTH_FIELD ? type : 0);
	}
}

static void dissect_ethernet(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 14))
		dissect_type(core, packet, be16(at.at + 12), rest(at, 14));
}

/* The family's number differs from one BSD to the next, its byte order from one machine to the
 * next, and on IRIX it has 16 bits. */
static void dissect_loopback(struct core *core, struct packet *packet, struct slice at,
			     bool network_order)
{
	u32 family;

	if (!has(at, 0, 4))
		return;
	family = be32(at.at);
	if (!network_order && family >> 16 == 0xff03) {
		dissect_serial(core, packet, at);
		return;
	}
	if (!network_order && family > UINT16_MAX)
		family = family == 2 << 16 ? 2 : __builtin_bswap32(family);
	at = rest(at, 4);
	switch (family) {
	case 2:
		dissect_ip(core, packet, at);
		break;
	case 24:
	case 28:
	case 30:
		dissect_ipv6(core, packet, at);
		break;
	default:
		if (!network_order && family > MAX_LENGTH_FIELD && family <= UINT16_MAX)
			dissect_type(core, packet, (u16)family, at);
		else
			packet->unread.why = READ;	/* not IP */
	}
}

static void dissect_cisco_hdlc(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 4))
		dissect_type(core, packet, be16(at.at + 2), rest(at, 4));
}

/* On a serial line, an address and a control byte may come before the protocol, or Cisco's
 * HDLC in its place. */
static void dissect_serial(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 1) && (at.at[0] == 0x0f || at.at[0] == 0x8f))
		dissect_cisco_hdlc(core, packet, at);
	else
		dissect_ppp(core, packet, has(at, 0, 1) && at.at[0] == 0xff ? rest(at, 2) : at);
}

/* Type, length, value, in the byte order of the file. */
static bool nflog_payload(const struct core *core, struct slice at, struct slice *payload)
{
	u32 offset = 4;

	while (has(at, offset, 4)) {
		u16 length = file_u16(core, at.at + offset);

		if (length < 4)
			return false;
		if (file_u16(core, at.at + offset + 2) == NFLOG_PAYLOAD) {
			*payload = trimmed(rest(at, offset + 4), length - 4u);
			return has(at, offset, length);
		}
		offset += (length + 3u) / 4 * 4;
	}
	return false;
}

static void dissect_nflog(struct core *core, struct packet *packet, struct slice at)
{
	struct slice payload;

	if (!has(at, 0, 4))
		return;
	if (!nflog_payload(core, at, &payload))
		return;
	if (at.at[0] == NFLOG_IPV4)
		dissect_ip(core, packet, payload);
	else if (at.at[0] == NFLOG_IPV6)
		dissect_ipv6(core, packet, payload);
	else
		packet->unread.why = READ;	/* not IP */
}

static void dissect_link(struct core *core, struct packet *packet, u32 link, struct slice at)
{
	switch (link) {
	case LINK_ETHERNET:
		dissect_ethernet(core, packet, at);
		break;
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
		dissect_ip(core, packet, at);
		break;
	case LINK_IPV6:
		dissect_ipv6(core, packet, at);
		break;
	case LINK_NULL:
		dissect_loopback(core, packet, at, false);
		break;
	case LINK_LOOP:
		dissect_loopback(core, packet, at, true);
		break;
	case LINK_COOKED:
		if (has(at, 0, 16))
			dissect_type(core, packet, be16(at.at + 14), rest(at, 16));
		break;
	case LINK_COOKED_2:
		if (has(at, 0, 20))
			dissect_type(core, packet, be16(at.at), rest(at, 20));
		break;
	case LINK_PPP:
	case LINK_PPP_SERIAL:
		dissect_serial(core, packet, at);
		break;
	case LINK_PPP_DIRECTION:
		packet->row.length -= !!packet->row.length;
		dissect_serial(core, packet, rest(at, 1));
		break;
	case LINK_PPP_ETHER:
		dissect_pppoe(core, packet, at);
		break;
	case LINK_CISCO_HDLC:
		dissect_cisco_hdlc(core, packet, at);
		break;
	case LINK_NFLOG:
		dissect_nflog(core, packet, at);
		break;
	default:
		ended(packet, LINK, link);
	}
}

/* The result. */

static double milliseconds(s64 ns)
{
	return ns ? (double)ns / 1e6 : NAN;
}

static void store(struct columns *to, const struct row *row)
{
	u64 i = to->used++;

	to->frame[i] = row->frame;
	to->time_ns[i] = row->time_ns;
	to->length[i] = row->length;
	to->protocol[i] = row->protocol;
	to->stream[i] = row->stream;
	to->src[i] = row->src;
	to->dst[i] = row->dst;
	to->src_port[i] = row->src_port;
	to->dst_port[i] = row->dst_port;
	to->ip_id[i] = row->ip_id;
	to->seq[i] = row->seq;
	to->ack[i] = row->ack;
	to->payload[i] = row->payload;
	to->flags[i] = row->flags;
	to->marks[i] = row->marks;
	to->ack_rtt_ms[i] = milliseconds(row->ack_rtt_ns);
	to->acked_frame[i] = row->acked_frame;
	to->initial_rtt_ms[i] = milliseconds(row->initial_rtt_ns);
	to->dup_ack_number[i] = row->dup_ack_number;
	to->dup_ack_frame[i] = row->dup_ack_frame;
	to->bytes_in_flight[i] = row->bytes_in_flight;
	to->push_bytes_sent[i] = row->push_bytes_sent;
	to->relative_seq[i] = row->relative_seq;
	to->relative_ack[i] = row->relative_ack;
	to->window[i] = row->window;
	to->window_scale[i] = row->window_scale;
	to->ecn[i] = row->ecn;
	to->completeness[i] = row->completeness;
}

void dissect(struct core *core, u32 link_type, s64 time_ns, struct slice frame)
{
	struct packet packet = { 0 };
	struct connection *connection;

	if (!core->state.frames++)
		core->state.start_ns = time_ns;
	packet.row.frame = core->state.frames;
	packet.row.time_ns = time_ns;
	packet.row.length = (s32)(frame.size < INT32_MAX ? frame.size : INT32_MAX);
	packet.unread.why = BROKEN;	/* until a header says otherwise */
	dissect_link(core, &packet, link_type, frame);
	if (packet.icmp)
		return;
	if (packet.unread.why != READ && (!packet.is_row || packet.unread.why == TUNNEL) &&
	    !unread_add(core->unread, packet.unread, 1))
		core->no_memory = true;
	if (!packet.is_row || core->no_memory)
		return;
	connection = &core->connections.items[packet.connection];
	packet.row.src = connection->ends[packet.side];
	packet.row.dst = connection->ends[!packet.side];
	if (packet.next_hop.family)
		packet.row.dst = address_number(&core->connections, &packet.next_hop);
	core->state.rows++;
	if (core->columns)
		store(core->columns, &packet.row);
	if (core->flows && !flows_add(core->flows, connection, &packet.row, packet.side))
		core->no_memory = true;
}
