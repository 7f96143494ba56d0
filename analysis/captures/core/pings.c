/* Echo requests and the replies to them, paired as Wireshark pairs them. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define TYPE_STEP_4	0x0800	/* what the checksums of a request and its reply differ by */
#define TYPE_STEP_6	0x0100

struct echo_key {
	struct address a, b;
	u16 sum, id, number;
};

struct request {
	s64 time_ns;
	s32 frame;
	bool answered;
};

struct ping {	/* a reply; Python reads it so */
	s64 time_ns, rtt_ns;
	s32 frame, request_frame;
	s32 src, dst;
};

struct pings {
	struct table *index;
	struct request *requests;
	struct ping *items;
	u32 request_count, request_capacity, count, capacity;
};

struct pings *pings_new(void)
{
	struct pings *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->index = table_new(sizeof(struct echo_key));
	if (!all->index) {
		free(all);
		return NULL;
	}
	return all;
}

void pings_free(struct pings *all)
{
	if (!all)
		return;
	table_free(all->index);
	free(all->requests);
	free(all->items);
	free(all);
}

u32 pings_count(const struct pings *all)
{
	return all->count;
}

/* A sum in ones' complement. */
static u16 stepped(u16 sum, u16 step)
{
	u32 total = (u16)~sum + (u16)~step;

	total = (total >> 16) + (total & 0xffff);
	return (u16)~(total + (total >> 16));
}

static bool ask(struct pings *all, s32 *number, const struct row *row)
{
	struct request *larger;

	if (*number < 0) {
		larger = grow(all->requests, &all->request_capacity, all->request_count + 1,
			      sizeof(*larger));
		if (!larger)
			return false;
		all->requests = larger;
		*number = (s32)all->request_count++;
	}
	all->requests[*number] = (struct request){ row->time_ns, row->frame, false };
	return true;
}

static bool answer(struct core *core, const struct packet *packet, struct request *request)
{
	struct pings *all = core->pings;
	const struct row *row = &packet->row;
	struct ping *larger;

	if (request->answered)
		return true;
	request->answered = true;
	larger = grow(all->items, &all->capacity, all->count + 1, sizeof(*larger));
	if (!larger)
		return false;
	all->items = larger;
	all->items[all->count++] = (struct ping){
		.time_ns = row->time_ns,
		.rtt_ns = elapsed(request->time_ns, row->time_ns),
		.frame = row->frame,
		.request_frame = request->frame,
		.src = address_number(&core->connections, &packet->src),
		.dst = address_number(&core->connections, &packet->dst),
	};
	return true;
}

/* The packet's addresses are the ends of the exchange, whichever of them asks. */
void pings_add(struct core *core, const struct packet *packet, bool is_request, struct slice at)
{
	bool four = packet->src.family == 4;
	bool swapped = memcmp(&packet->src, &packet->dst, sizeof(packet->src)) > 0;
	u16 sum = be16(at.at + 2);
	struct echo_key key;
	s32 *number;

	memset(&key, 0, sizeof(key));
	key.a = swapped ? packet->dst : packet->src;
	key.b = swapped ? packet->src : packet->dst;
	key.id = be16(at.at + 4);
	key.number = be16(at.at + 6);
	if (is_request == four)	/* the side whose sum Wireshark turns into the other's */
		key.sum = stepped(sum, four ? TYPE_STEP_4 : TYPE_STEP_6);
	else
		key.sum = sum == 0xffff ? 0 : sum;
	number = table_at(core->pings->index, &key);
	if (!number ||
	    (is_request && !ask(core->pings, number, &packet->row)) ||
	    (!is_request && *number >= 0 &&
	     !answer(core, packet, &core->pings->requests[*number])))
		core->no_memory = true;
}

/* For Python. */

const struct ping *core_pings(struct core *core)
{
	return core->pings->items;
}
