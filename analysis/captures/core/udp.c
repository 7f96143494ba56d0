/* UDP, and the tunnels over it. */
#include "dissect.h"

enum { PORT_GTP = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081 };

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
	struct row row = *packet->row;

	packet->is_row = false;
	packet->skipped.reason = BROKEN;
	if (port == PORT_VXLAN)
		dissect_vxlan(core, packet, at);
	else
		dissect_geneve(core, packet, at);
	if (packet->is_row || packet->icmp)
		return;
	*packet = outer;
	*packet->row = row;
}

static void dissect_udp_payload(struct core *core, struct packet *packet, struct slice at)
{
	const u16 ports[] = { packet->row->src_port, packet->row->dst_port };

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

void dissect_udp(struct core *core, struct packet *packet, struct slice at, bool lite)
{
	struct row *row = packet->row, before;
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
	before = *row;
	clear_row(row);
	row->time_ns = before.time_ns;
	row->frame = before.frame;
	row->length = before.length;
	row->ip_id = before.ip_id;
	row->ecn = before.ecn;
	row->src_port = be16(at.at);
	row->dst_port = be16(at.at + 2);
	row->protocol = UDP;
	found = connect_packet(core, packet, UDP, row->src_port, row->dst_port, false, &is_new);
	if (!found)
		return;
	row->stream = found->stream;
	row->payload = (s32)size - 8;
	row->content = content_of(rest(at, 8));
	packet->is_row = !lite;
	packet->skipped.reason = READ;
	if (!lite && !packet->fragment && !packet->quoted)
		dissect_udp_payload(core, packet, rest(trimmed(at, size), 8));
}
