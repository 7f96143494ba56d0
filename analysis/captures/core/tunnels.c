/* Headers between two of the network layer: MPLS and GRE. */
#include "dissect.h"

/* Labels, the last of which says so; what follows is told by its first bits. */
void dissect_mpls(struct core *core, struct packet *packet, struct slice at)
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

void dissect_gre(struct core *core, struct packet *packet, struct slice at)
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
			packet->skipped.reason = READ;
		break;
	default:
		ended(packet, ETHERTYPE, type);
	}
}
