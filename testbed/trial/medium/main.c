/*
 * The air between two simulated 802.11 radios (mac80211_hwsim): who sends when, for how long, and
 * what is understood.
 *
 *   testbed-medium run SEED SIGNAL_DBM BUSY NAME ADDRESS NAME ADDRESS
 *   testbed-medium rates SIGNAL_DBM BYTES
 *
 * The first makes the radios, whose interfaces may then be put into other namespaces, and is
 * given every frame that they send, with the rates that the kernel's rate control has chosen.
 * Signal and noise are the same both ways. BUSY is the share of the time that other stations ask
 * for. SIGTERM ends it with a report on stdout, as JSON. The second prints the rates, how long a
 * frame and its answer take, and the chance that it is understood.
 */
#include "medium.h"
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

static int signals;		/* readable when we are to end */

void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void catch_signals(void)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGTERM);
	sigaddset(&both, SIGINT);
	sigprocmask(SIG_BLOCK, &both, NULL);
	signals = signalfd(-1, &both, SFD_CLOEXEC);
	if (signals < 0)
		die("signalfd");
	prctl(PR_SET_TIMERSLACK, 1);	/* wake when asked, not up to 50 µs later */
}

static void print_counts(const struct radio *radio, const char *name)
{
	const struct counts *c = &radio->counts;

	printf(" {\"radio\": \"%s\", \"frames\": %llu, \"bytes\": %llu, \"attempts\": %llu, "
	       "\"failed\": %llu, \"lost\": %llu, \"exchanges\": %llu, \"collisions\": %llu, "
	       "\"overflows\": %llu, \"air_s\": %.9f, \"attempts_by_mcs\": [",
	       name, (unsigned long long)c->frames, (unsigned long long)c->bytes,
	       (unsigned long long)c->attempts, (unsigned long long)c->failed,
	       (unsigned long long)c->lost, (unsigned long long)c->exchanges,
	       (unsigned long long)c->collisions, (unsigned long long)c->overflows,
	       (double)c->air_ns / NS_PER_S);
	for (int i = 0; i < 8; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)c->by_mcs[i]);
	printf("]}");
}

static void print_report(char **words, double seconds)
{
	printf("{\"seconds\": %.9f, \"refused\": %llu, \"others\": {\"frames\": %llu, "
	       "\"collisions\": %llu, \"lost\": %llu, \"air_s\": %.9f}, \"radios\": [\n",
	       seconds, (unsigned long long)refused, (unsigned long long)foreign_frames,
	       (unsigned long long)foreign_collisions, (unsigned long long)foreign_lost,
	       (double)foreign_air_ns / NS_PER_S);
	for (int i = 0; i < RADIOS; i++) {
		print_counts(&radios[i], words[2 * i]);
		printf("%s\n", i + 1 < RADIOS ? "," : "");
	}
	printf("]}\n");
}

static int run(char **words)
{
	struct pollfd watched[2];
	int64_t now, next;

	signal_dbm = atoi(words[1]);
	catch_signals();
	start_access(strtoull(words[0], NULL, 10), signal_dbm, strtod(words[2], NULL));
	open_radios(words + 3);
	watched[0] = (struct pollfd){ .fd = netlink, .events = POLLIN };
	watched[1] = (struct pollfd){ .fd = signals, .events = POLLIN };
	for (;;) {
		struct timespec wait;

		now = now_ns();
		proceed(now);		/* before what has come just now */
		flush();
		take(now);
		next = proceed(now);
		flush();
		wait.tv_sec = (next - now) / NS_PER_S;
		wait.tv_nsec = (next - now) % NS_PER_S;
		if (ppoll(watched, 2, next == NEVER ? NULL : &wait, NULL) < 0)
			die("ppoll");
		if (watched[1].revents)
			break;
	}
	proceed(now_ns());
	now = now_ns();
	print_report(words + 3, zero_ns == NEVER ? 0 : (double)(now - zero_ns) / NS_PER_S);
	return 0;
}

static int print_rates(char **words)
{
	double signal = strtod(words[0], NULL);
	int bytes = atoi(words[1]);

	printf("[");
	for (int8_t i = 0; i < 8; i++) {
		struct rate rate = { .index = i, .ht = 1 };

		printf("%s\n {\"mcs\": %d, \"air_us\": %.1f, \"exchange_us\": %.1f, "
		       "\"chance\": %.6f}", i ? "," : "", i, air_ns(rate, bytes) / 1e3,
		       exchange_ns(rate, bytes + 4, 14) / 1e3, chance(rate, signal, bytes));
	}
	printf("\n]\n");
	return 0;
}

int main(int count, char **words)
{
	if (count == 9 && !strcmp(words[1], "run"))
		return run(words + 2);
	if (count == 4 && !strcmp(words[1], "rates"))
		return print_rates(words + 2);
	fprintf(stderr, "usage: testbed-medium run | rates, see main.c\n");
	return 2;
}
