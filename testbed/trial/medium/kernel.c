/*
 * What the medium says to the kernel and hears from it: generic netlink, and nothing but sockets.
 *
 * Calling the kernel is what costs in the guest: frames are read many at a time, and what came of
 * an aggregate is told in one message of many parts.
 */
#include "medium.h"
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <netinet/ether.h>
#include <sys/socket.h>

/* The kernel's drivers/net/wireless/mac80211_hwsim.h, which is not among its headers for others. */
enum { CMD_REGISTER = 1, CMD_FRAME, CMD_TX_INFO_FRAME, CMD_NEW_RADIO };
enum {
	ATTR_ADDR_RECEIVER = 1, ATTR_ADDR_TRANSMITTER, ATTR_FRAME, ATTR_FLAGS, ATTR_RX_RATE,
	ATTR_SIGNAL, ATTR_TX_INFO, ATTR_COOKIE, ATTR_RADIO_NAME = 17, ATTR_FREQ = 19,
	ATTR_TX_INFO_FLAGS = 21, ATTR_PERM_ADDR, ATTRS,
};
enum { FLAG_ACKNOWLEDGED = 4 };
enum { RATE_RTS = 1, RATE_HT = 8, RATE_SHORT_GUARD = 128 };

#define MESSAGE_BYTES	8192
#define TAKEN		64		/* messages at once */
#define ANSWER_BYTES	(1 << 20)
#define BUFFER_BYTES	(8 << 20)

struct tx_rate {
	int8_t index;
	uint8_t count;
} __attribute__((packed));

struct tx_rate_flags {
	int8_t index;
	uint16_t flags;
} __attribute__((packed));

int netlink;
uint64_t refused;
int32_t signal_dbm;

static uint16_t family;
static char answers[ANSWER_BYTES];
static size_t answer_bytes;

static struct nlmsghdr *begin(uint16_t type, uint8_t command, uint16_t flags)
{
	struct nlmsghdr *message = (struct nlmsghdr *)(answers + answer_bytes);
	struct genlmsghdr *head = NLMSG_DATA(message);

	memset(message, 0, NLMSG_LENGTH(GENL_HDRLEN));
	message->nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | flags;
	head->cmd = command;
	head->version = 1;
	return message;
}

static void put(struct nlmsghdr *message, uint16_t type, const void *data, size_t bytes)
{
	struct nlattr *attribute = (struct nlattr *)((char *)message + message->nlmsg_len);

	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + bytes;
	memcpy((char *)attribute + NLA_HDRLEN, data, bytes);
	memset((char *)attribute + attribute->nla_len, 0, NLA_ALIGN(bytes) - bytes);
	message->nlmsg_len += NLA_ALIGN(attribute->nla_len);
}

static void finish(struct nlmsghdr *message)
{
	answer_bytes += NLMSG_ALIGN(message->nlmsg_len);
}

void flush(void)
{
	if (answer_bytes && send(netlink, answers, answer_bytes, 0) < 0)
		die("netlink");
	answer_bytes = 0;
}

void deliver(struct radio *from, struct frame *frame)
{
	struct radio *to = &radios[from == &radios[0]];
	uint32_t rate = frame->rates[frame->stage].ht ? 0 : frame->rates[frame->stage].index;
	struct nlmsghdr *message = begin(family, CMD_FRAME, 0);

	put(message, ATTR_ADDR_RECEIVER, to->address, ETH_ALEN);
	put(message, ATTR_FRAME, frame->data, frame->bytes);
	put(message, ATTR_RX_RATE, &rate, sizeof(rate));
	put(message, ATTR_SIGNAL, &signal_dbm, sizeof(signal_dbm));
	put(message, ATTR_FREQ, &frame->freq, sizeof(frame->freq));
	finish(message);
}

void report(struct radio *from, struct frame *frame, int acknowledged)
{
	uint32_t flags = frame->flags | (acknowledged ? FLAG_ACKNOWLEDGED : 0);
	struct tx_rate tried[CHAIN];
	struct nlmsghdr *message = begin(family, CMD_TX_INFO_FRAME, 0);

	for (int i = 0; i < CHAIN; i++)
		tried[i] = (struct tx_rate){
			.index = frame->tried[i] ? frame->rates[i].index : -1,
			.count = frame->tried[i],
		};
	put(message, ATTR_ADDR_TRANSMITTER, from->address, ETH_ALEN);
	put(message, ATTR_FLAGS, &flags, sizeof(flags));
	put(message, ATTR_SIGNAL, &signal_dbm, sizeof(signal_dbm));
	put(message, ATTR_TX_INFO, tried, sizeof(tried));
	put(message, ATTR_COOKIE, &frame->cookie, sizeof(frame->cookie));
	finish(message);
}

static void parse(struct nlmsghdr *message, struct nlattr **found)
{
	char *at = (char *)NLMSG_DATA(message) + GENL_HDRLEN;
	char *end = (char *)message + message->nlmsg_len;

	memset(found, 0, ATTRS * sizeof(*found));
	while (at + NLA_HDRLEN <= end) {
		struct nlattr *attribute = (struct nlattr *)at;

		if (attribute->nla_len < NLA_HDRLEN)
			break;
		if ((attribute->nla_type & NLA_TYPE_MASK) < ATTRS)
			found[attribute->nla_type & NLA_TYPE_MASK] = attribute;
		at += NLA_ALIGN(attribute->nla_len);
	}
}

static void *content(struct nlattr *attribute)
{
	return (char *)attribute + NLA_HDRLEN;
}

static void read_rates(struct frame *frame, struct nlattr **found)
{
	struct tx_rate *wanted = content(found[ATTR_TX_INFO]);
	struct tx_rate_flags *flags = content(found[ATTR_TX_INFO_FLAGS]);

	for (int i = 0; i < CHAIN; i++) {
		frame->rates[i] = (struct rate){
			.index = wanted[i].index,
			.ht = !!(flags[i].flags & RATE_HT),
			.short_guard = !!(flags[i].flags & RATE_SHORT_GUARD),
			.rts = !!(flags[i].flags & RATE_RTS),
		};
		frame->allowed[i] = wanted[i].count ? wanted[i].count : 1;
	}
	if (frame->rates[0].index < 0)	/* it left the choice to us: the slowest */
		frame->rates[0] = (struct rate){ .index = 0 };
}

static void take_frame(struct nlmsghdr *message, int64_t now)
{
	struct nlattr *found[ATTRS];
	struct frame *frame = calloc(1, sizeof(*frame));

	parse(message, found);
	if (!found[ATTR_FRAME] || !found[ATTR_TX_INFO] || !found[ATTR_TX_INFO_FLAGS] ||
	    !found[ATTR_COOKIE] || !found[ATTR_FLAGS] || !found[ATTR_ADDR_TRANSMITTER] ||
	    !found[ATTR_FREQ] || found[ATTR_FRAME]->nla_len > FRAME_BYTES) {
		errno = EPROTO;
		die("a frame as no kernel of ours sends it");
	}
	frame->bytes = found[ATTR_FRAME]->nla_len - NLA_HDRLEN;
	memcpy(frame->data, content(found[ATTR_FRAME]), frame->bytes);
	memcpy(&frame->cookie, content(found[ATTR_COOKIE]), sizeof(frame->cookie));
	memcpy(&frame->flags, content(found[ATTR_FLAGS]), sizeof(frame->flags));
	memcpy(&frame->freq, content(found[ATTR_FREQ]), sizeof(frame->freq));
	read_rates(frame, found);
	for (int i = 0; i < RADIOS; i++)
		if (!memcmp(content(found[ATTR_ADDR_TRANSMITTER]), radios[i].address, ETH_ALEN)) {
			offer(&radios[i], frame, now);
			return;
		}
	free(frame);
}

/* All that has come; a refusal is counted: a frame for a radio that is down, say. */
void take(int64_t now)
{
	static char buffers[TAKEN][MESSAGE_BYTES];
	struct iovec parts[TAKEN];
	struct mmsghdr messages[TAKEN];
	int count;

	do {
		memset(messages, 0, sizeof(messages));
		for (int i = 0; i < TAKEN; i++) {
			parts[i] = (struct iovec){ buffers[i], MESSAGE_BYTES };
			messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
		}
		count = recvmmsg(netlink, messages, TAKEN, MSG_DONTWAIT, NULL);
		if (count < 0 && errno != EAGAIN)
			die("netlink");
		for (int i = 0; i < count; i++) {
			struct nlmsghdr *message = (struct nlmsghdr *)buffers[i];
			struct genlmsghdr *head = NLMSG_DATA(message);

			if (message->nlmsg_type == NLMSG_ERROR)
				refused++;
			else if (message->nlmsg_type == family && head->cmd == CMD_FRAME)
				take_frame(message, now);
		}
	} while (count == TAKEN);
}

/* Send what was begun, and wait for the kernel's yes. */
static void ask(const char *what)
{
	static char buffer[MESSAGE_BYTES];
	struct nlmsghdr *answer = (struct nlmsghdr *)buffer;

	flush();
	do
		if (recv(netlink, buffer, sizeof(buffer), 0) < 0)
			die(what);
	while (answer->nlmsg_type != NLMSG_ERROR);
	errno = -((struct nlmsgerr *)NLMSG_DATA(answer))->error;
	if (errno > 0)	/* a radio's yes is its number */
		die(what);
}

static void find_family(void)
{
	static char buffer[MESSAGE_BYTES];
	struct nlmsghdr *message = begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	struct nlattr *found[ATTRS];

	put(message, CTRL_ATTR_FAMILY_NAME, "MAC80211_HWSIM", sizeof("MAC80211_HWSIM"));
	finish(message);
	flush();
	if (recv(netlink, buffer, sizeof(buffer), 0) < 0)
		die("netlink");
	message = (struct nlmsghdr *)buffer;
	errno = ENOENT;
	if (message->nlmsg_type == NLMSG_ERROR)
		die("this kernel has no mac80211_hwsim");
	parse(message, found);
	memcpy(&family, content(found[CTRL_ATTR_FAMILY_ID]), sizeof(family));
}

void open_radios(char **words)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int bytes = BUFFER_BYTES;

	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (netlink < 0 || bind(netlink, (struct sockaddr *)&self, sizeof(self)))
		die("netlink");
	setsockopt(netlink, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(netlink, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	find_family();
	finish(begin(family, CMD_REGISTER, NLM_F_ACK));
	ask("cannot be the medium: is another one running?");
	for (int i = 0; i < RADIOS; i++) {
		struct ether_addr *address = ether_aton(words[2 * i + 1]);
		struct nlmsghdr *message = begin(family, CMD_NEW_RADIO, NLM_F_ACK);

		errno = EINVAL;
		if (!address)
			die(words[2 * i + 1]);
		memcpy(radios[i].address, address, ETH_ALEN);
		put(message, ATTR_RADIO_NAME, words[2 * i], strlen(words[2 * i]) + 1);
		put(message, ATTR_PERM_ADDR, address, ETH_ALEN);
		finish(message);
		ask("cannot make a radio");
	}
}
