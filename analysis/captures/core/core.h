/*
 * The reduction of packet captures, as Wireshark 4.0 dissects them, in one pass:
 *
 *	file.c		a capture file's bytes become frames
 *	dissect.c	a frame becomes a row, by its headers down to TCP or UDP:
 *	links.c, tunnels.c, ip.c, udp.c
 *	fragments.c	IP fragments become datagrams
 *	tcp.c		what Wireshark's tcp.analysis.* says of a segment
 *	connections.c	which packets belong together; the addresses
 *	table.c		hash tables
 *	rows.c		where rows go: columns, and sums over flows
 *	flows.c		sums over each connection
 *	sacks.c		the blocks of selective acknowledgements
 *	skipped.c	the frames that were not read
 *
 * The rules were learnt from Wireshark's behaviour and documentation, and are held against
 * tshark packet for packet (analysis/captures/tshark.py); where they look odd, Wireshark is odd.
 */
#ifndef TESTBED_CORE_H
#define TESTBED_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define NS_PER_S	1000000000LL

enum protocol { TCP, UDP };

/* What tcp.analysis.flags may say; bits of a row's `marks`.  analysis/captures/tcp.py names them. */
enum mark {
	RETRANSMISSION		= 1 << 0,
	FAST_RETRANSMISSION	= 1 << 1,
	SPURIOUS_RETRANSMISSION	= 1 << 2,
	OUT_OF_ORDER		= 1 << 3,
	DUPLICATE_ACK		= 1 << 4,
	LOST_SEGMENT		= 1 << 5,
	ACK_LOST_SEGMENT	= 1 << 6,
	WINDOW_UPDATE		= 1 << 7,
	WINDOW_FULL		= 1 << 8,
	ZERO_WINDOW		= 1 << 9,
	ZERO_WINDOW_PROBE	= 1 << 10,
	ZERO_WINDOW_PROBE_ACK	= 1 << 11,
	KEEP_ALIVE		= 1 << 12,
	KEEP_ALIVE_ACK		= 1 << 13,
	REUSED_PORTS		= 1 << 14,
};

/* The low bits of TCP's flags, as in the header. */
enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, ECE = 64, CWR = 128, AE = 256 };

struct address {	/* Python reads it so */
	u64 words[2];	/* as in the packet; an IPv4 address has zeros behind it */
	u64 family;	/* 4 or 6 */
};

/* One packet of the result; what is not known is 0 unless it says otherwise. */
struct row {
	s64 time_ns;		/* since 1970 */
	s64 ack_rtt_ns;		/* 0: acknowledges nothing new */
	s64 initial_rtt_ns;	/* 0: not said of this packet */
	u64 content;		/* what no router changes, hashed; 0: TCP over IPv4 */
	s32 frame;		/* from 1 */
	s32 length;		/* on the wire; as in Wireshark, at most INT32_MAX */
	s32 stream;
	s32 src, dst;		/* places in the table of addresses */
	s32 payload;
	s32 ip_id;		/* -1: IPv6 has none */
	s32 acked_frame;
	s32 dup_ack_frame;
	u32 connection;		/* its place */
	u32 seq, ack;		/* as in the header */
	u32 relative_seq, relative_ack;
	u32 window;		/* scaled */
	u32 marks;
	u32 dup_ack_number;
	u32 bytes_in_flight, push_bytes_sent;
	u16 src_port, dst_port;
	u16 flags;
	s16 window_scale;	/* the factor; -1 unknown, -2 not used, 0 for a SYN */
	u8 protocol;
	u8 side;		/* of the connection, that sent it */
	u8 ecn;			/* IP's two bits */
	u8 completeness;	/* before this packet, as tshark prints it */
	bool acked_data;	/* the acknowledged frame carried data */
	bool timed;		/* it did, and Karn's rule lets its round trip count */
};

/* Copied from zeros: gcc would clear so many bytes by an instruction (rep stos) that takes
 * longer to begin than this takes in all. */
static inline void clear_row(struct row *row)
{
	static const struct row zeros;

	*row = zeros;
}

/* Where rows go: one array a column, each of `capacity` places. A null pointer: not wanted. */
struct columns {
	u64 capacity, used;
	s32 *frame;
	s64 *time_ns;
	s32 *length;
	u8 *protocol;
	s32 *stream, *src, *dst;
	u16 *src_port, *dst_port;
	s32 *ip_id;
	u32 *seq, *ack;
	s32 *payload;
	u16 *flags;
	u32 *marks;
	double *ack_rtt_ms;	/* NaN where there is none */
	s32 *acked_frame;
	double *initial_rtt_ms;	/* NaN */
	u32 *dup_ack_number;
	s32 *dup_ack_frame;
	u32 *bytes_in_flight, *push_bytes_sent;
	u32 *relative_seq, *relative_ack, *window;
	s16 *window_scale;
	u8 *ecn, *completeness;
	u8 *acked_data;		/* the acknowledged frame carried data */
	u8 *timed;		/* its round trip is one by Karn's rule */
	u64 *content;		/* a hash of the packet behind its IP header */
};

enum stop { HUNGRY, FULL, CUT_SHORT, CORRUPT, NO_MEMORY };

/* How the reading stands; Python looks at it after each piece. */
struct state {
	u32 stop;		/* enum stop */
	s32 frames;		/* all, of whatever protocol */
	u64 rows;
	u64 offset;		/* in the file: how far it was read, or where it is damaged */
	u64 waiting;		/* fragments of datagrams that are not whole */
	s64 start_ns;		/* of the first frame */
	u32 addresses, flows, sacks, skipped;
	char reason[120];	/* of the damage */
};

/* A part of a packet: `have` bytes were captured of `size` on the wire. */
struct slice {
	const u8 *at;
	u32 have, size;
};

/* Growing memory; a capture without memory for it ends with NO_MEMORY. */
void *grow(void *array, u32 *capacity, u32 needed, size_t item);

static inline u16 be16(const u8 *p) { return (u16)(p[0] << 8 | p[1]); }
static inline u32 be32(const u8 *p) { return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }

static inline bool has(struct slice s, u32 from, u32 bytes)
{
	return from <= s.have && bytes <= s.have - from;
}

static inline struct slice rest(struct slice s, u32 from)
{
	u32 have = from < s.have ? from : s.have, size = from < s.size ? from : s.size;

	return (struct slice){ s.at + have, s.have - have, s.size - size };
}

static inline struct slice trimmed(struct slice s, u32 size)
{
	if (size < s.size)
		s.size = size;
	if (size < s.have)
		s.have = size;
	return s;
}

/* A hash of the bytes that were captured, for packets that no IP identification tells apart. */
u64 content_of(struct slice);

/* Absurd times wrap around. */
static inline s64 elapsed(s64 from, s64 to) { return (s64)((u64)to - (u64)from); }

/* connections.c */

struct unacked {	/* a segment that nothing acknowledged yet */
	s64 time_ns;
	s32 frame;
	u32 seq, next_seq;
	bool data;
	bool again;		/* some of its bytes were sent twice, as far as is known */
	bool needless;		/* all of them were acknowledged when it was sent */
};

/* Unacknowledged segments, oldest first: a part of an array that moves along it. */
struct segments {
	struct unacked *items;
	u32 first, count, capacity;
	bool ordered;		/* each begins no earlier than its predecessor ends */
	bool range_known;	/* low and high hold, for this base */
	u32 base, low, high;	/* the extremes, relative to the base */
};

struct direction {
	struct segments segments;
	s64 last_ack_time, next_seq_time;
	u32 base_seq;
	u32 last_ack;
	u32 last_non_dup_ack;	/* frame */
	u32 dup_acks;
	u32 next_seq;
	u32 max_seq_to_be_acked;
	u32 window;
	u32 push_bytes;
	u32 last_marks;
	u32 sack_bytes;		/* told by the last packet of this direction */
	s16 scale;		/* -1 unknown, -2 not used */
	bool base_known;
	bool in_flight_valid;
	bool push_was_last;
	bool before_first_ack;
};

struct tcp {
	struct direction sides[2];
	s64 syn_time, initial_rtt;
	u8 completeness;
};

struct key {
	u64 a[2], b[2];		/* addresses; a is the greater end */
	u64 rest;		/* the ports, the addresses' families, the protocol */
};

struct connection {
	struct key key;
	s32 stream;		/* of TCP: its place among the tcps too */
	u8 protocol;
	s32 ends[2];		/* addresses; the greater one is side 0 */
};

#define RECENT	1024		/* a power of two */

struct connections {
	struct table *index, *address_index;
	struct connection *items;
	struct tcp *tcps;	/* where they are changes with each new one */
	struct address *addresses;
	u32 count, capacity, tcp_capacity, address_count, address_capacity;
	s32 streams[2];		/* by protocol */
	u32 recent[RECENT];	/* by a part of the key: the connection last seen there */
};

/* The address's place in the table; -1 without memory. */
s32 address_number(struct connections *, const struct address *);
bool connections_init(struct connections *);
/* Frees what only the reading needs; the addresses stay. */
void connections_close(struct connections *);
void connections_clear(struct connections *);

/* table.c */

struct table;	/* keys of so many words to numbers */

struct table *table_new(u32 key_words);
void table_free(struct table *);
/* The place of the key's number, put there as -1 if it was not known; null without memory. */
s32 *table_at(struct table *, const u64 *key);
void table_remove(struct table *, const u64 *key);

/* fragments.c */

struct fragments;

struct fragment_key {
	struct address src, dst;	/* with the version of IP */
	u64 id;
};

struct fragments *fragments_new(void);
void fragments_free(struct fragments *);
/* Adds a fragment. Once the datagram is whole: true, and its beginning and size in `whole`,
 * which stays until the next call. */
bool fragments_add(struct fragments *, const struct fragment_key *, u32 offset,
		   struct slice data, bool more, struct slice *whole);
/* How many belong to datagrams that are not whole. */
u64 fragments_waiting(const struct fragments *);

/* flows.c */

struct flows;

struct flows *flows_new(void);
void flows_free(struct flows *);
bool flows_add(struct flows *, const struct row *);
u32 flows_count(const struct flows *);

/* rows.c */

struct core;
struct rows;

struct rows *rows_new(struct flows *);
/* Ends its thread; what is not stored is lost. */
void rows_free(struct rows *);
/* The row of the next packet, all zeros. */
struct row *rows_next(struct rows *);
/* The row is one of the result: it goes into the columns and the flows, if not at once. */
void rows_keep(struct core *);
/* All rows are where they go. */
void rows_flush(struct core *);

/* dissect.c */

/* Why a frame is not read, or not to its end. */
enum skip_reason {
	READ,
	BROKEN,		/* its headers are cut short or malformed */
	LINK,		/* the numbers: of a link layer, */
	ETHERTYPE,	/* of what Ethernet carries, */
	IP_PROTOCOL,	/* of what IP carries, */
	PPP_PROTOCOL,	/* of what PPP carries, */
	TUNNEL,		/* of a port; it is read as UDP */
	OTHER_BLOCK,	/* of a pcapng block that is no packet, and counts as a frame */
};

struct skip {
	u32 reason;	/* enum skip_reason */
	u32 number;
};

struct packet {	/* what is known of the packet in work, its innermost headers so far */
	struct address src, dst;
	struct address next_hop;	/* IPv6's destination if a route goes on; family 0 without */
	struct row *row;
	bool is_row;		/* to be told */
	struct skip skipped;	/* where the dissection ended, if not at TCP or UDP */
	bool icmp;		/* somewhere: what it quotes is no packet of a flow */
	bool quoted;		/* within an ICMP error */
	bool fragment;		/* only a part of a datagram is there */
	u16 vlan;
	int depth;
};

/* sacks.c */

#define MAX_SACK_BLOCKS		4	/* that a header has room for */

struct sack {	/* a segment's; edges as Wireshark shows them, relative like relative_ack */
	u32 count, left[MAX_SACK_BLOCKS], right[MAX_SACK_BLOCKS];
};

struct sacks;

struct sacks *sacks_new(void);
void sacks_free(struct sacks *);
u32 sacks_count(const struct sacks *);
void sacks_add(struct core *, s32 frame, const struct sack *);

/* skipped.c */

struct skipped;

struct skipped *skipped_new(void);
void skipped_free(struct skipped *);
u32 skipped_count(const struct skipped *);
bool skipped_add(struct skipped *, struct skip, u64 frames);

struct core {
	struct state state;	/* first, for Python */
	struct connections connections;
	struct fragments *fragments;
	struct sacks *sacks;	/* filled where columns are */
	struct skipped *skipped;
	bool tunnels;		/* what VXLAN and GENEVE carry is read */
	struct rows *rows;
	struct flows *flows;	/* null: not wanted */
	struct columns *columns;	/* null: not wanted */
	struct file *file;
	bool no_memory;
};

/* A number in the byte order of the file, as some link layers have them. */
u16 file_u16(const struct core *, const u8 *at);

void dissect(struct core *, u32 link_type, s64 time_ns, struct slice frame);

/* The connection of the packet's addresses and ports; a new one if there is none, or if
 * `again`. */
struct connection *connect_packet(struct core *, struct packet *, int protocol, u16 src_port,
				  u16 dst_port, bool again, bool *is_new);

/* tcp.c */

void dissect_tcp(struct core *, struct packet *, struct slice);
void tcp_clear(struct tcp *);

#endif
