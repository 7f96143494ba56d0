/* Link layers, and what their frames say that they carry. */
#include <string.h>

#include "dissect.h"

#define MAX_LENGTH_FIELD 1500	/* an Ethernet type field up to it is a length */

enum link {
	LINK_NULL = 0, LINK_ETHERNET = 1, LINK_PPP = 9, LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14, LINK_PPP_SERIAL = 50, LINK_PPP_ETHER = 51, LINK_RAW = 101,
	LINK_CISCO_HDLC = 104, LINK_LOOP = 108, LINK_COOKED = 113, LINK_PPP_DIRECTION = 204,
	LINK_IPV4 = 228, LINK_IPV6 = 229, LINK_NFLOG = 239, LINK_COOKED_2 = 276,
};

enum { PPP_IP = 0x21, PPP_IPV6 = 0x57, PPP_MPLS = 0x281, PPP_MPLS_MULTICAST = 0x283 };
enum { NFLOG_IPV4 = 2, NFLOG_IPV6 = 10, NFLOG_PAYLOAD = 9 };

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

static void dissect_pppoe(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 6) && !at.at[1])
		dissect_ppp(core, packet, trimmed(rest(at, 6), be16(at.at + 4)));
}

void dissect_type(struct core *core, struct packet *packet, u16 type, struct slice at)
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

void dissect_ethernet(struct core *core, struct packet *packet, struct slice at)
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
			packet->skipped.reason = READ;	/* not IP */
	}
}

static void dissect_cisco_hdlc(struct core *core, struct packet *packet, struct slice at)
{
	if (has(at, 0, 4))
		dissect_type(core, packet, be16(at.at + 2), rest(at, 4));
}

/* On a serial line, an address and a control byte may come before the protocol, or Cisco's
 * HDLC in its place. */
void dissect_serial(struct core *core, struct packet *packet, struct slice at)
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
		packet->skipped.reason = READ;	/* not IP */
}

void dissect_link(struct core *core, struct packet *packet, u32 link, struct slice at)
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
		packet->row->length -= !!packet->row->length;
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
