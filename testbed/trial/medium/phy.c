/*
 * Air times of IEEE 802.11n (20 MHz, one stream, mixed format, 2.4 GHz), and the chance that a
 * frame is understood.
 *
 * The chance is that of ns-3's model for OFDM (Pei and Henderson, "Validation of OFDM error rate
 * model in ns-3", 2010): the bit error rate of the modulation in white noise, then a bound for
 * the Viterbi decoder from the weights of the convolutional code and its punctured forms. What
 * noise there is follows from the signal: thermal noise of 20 MHz, and a receiver with the noise
 * figure (10 dB) and the implementation's loss (5 dB) by which IEEE 802.11 makes its table of
 * least sensitivities, so that this receiver is just as good as the standard asks for.
 */
#include "medium.h"
#include <math.h>

#define NOISE_DBM	(-174 + 73 + 10 + 5)
#define FCS_BYTES	4
#define PREAMBLE	(20 * US)	/* OFDM's; HT adds a signal field and two for training */
#define HT_PREAMBLE	(36 * US)
#define EXTENSION	(6 * US)	/* after any OFDM frame at 2.4 GHz */
#define CCK_PREAMBLE	(192 * US)
#define SYMBOL_US	4
#define RTS_BYTES	20
#define CTS_BYTES	14
#define TERMS		10

static const struct coding {
	int bits;			/* of data in a symbol */
	int points;			/* of the constellation */
	int code;			/* k of the code's rate: 1/2, 2/3, 3/4, 5/6 */
} HT[] = {
	{ 26, 2, 1 }, { 52, 4, 1 }, { 78, 4, 3 }, { 104, 16, 1 },
	{ 156, 16, 3 }, { 208, 64, 2 }, { 234, 64, 3 }, { 260, 64, 5 },
}, OFDM[] = {
	{ 24, 2, 1 }, { 36, 2, 3 }, { 48, 4, 1 }, { 72, 4, 3 },
	{ 96, 16, 1 }, { 144, 16, 3 }, { 192, 64, 2 }, { 216, 64, 3 },
};
static const double CCK_MBIT[] = { 1, 2, 5.5, 11 };

static const struct weights {
	int first, step;		/* the distances: first, first + step … */
	double bits[TERMS];		/* wrong, in all paths of a distance */
} WEIGHTS[] = {
	[1] = { 10, 2, { 36, 211, 1404, 11633, 77433, 502690, 3322763, 21292910, 134365911 } },
	[2] = { 6, 1, { 3, 70, 285, 1276, 6160, 27128, 117019, 498860, 2103891, 8784123 } },
	[3] = { 5, 1, { 42, 201, 1492, 10469, 62935, 379644, 2253373, 13073811, 75152755,
			428005675 } },
	[5] = { 4, 1, { 92, 528, 8694, 79453, 792114, 7375573, 67884974, 610875423, 5427275376,
			47664215639 } },
};

static int is_cck(struct rate rate)
{
	return !rate.ht && rate.index < 4;
}

static const struct coding *coding(struct rate rate)
{
	return rate.ht ? &HT[rate.index & 7] : &OFDM[(rate.index - 4) & 7];
}

static int64_t symbols_ns(int bits_a_symbol, int bytes)
{
	int bits = 16 + 8 * bytes + 6;	/* service, tail */

	return (bits + bits_a_symbol - 1) / bits_a_symbol * SYMBOL_US * US;
}

/* A frame whose bytes have their check sequences already. */
static int64_t whole_ns(struct rate rate, int bytes)
{
	int64_t symbols;

	if (is_cck(rate))
		return CCK_PREAMBLE + (int64_t)ceil(8 * bytes / CCK_MBIT[rate.index & 3]) * US;
	symbols = symbols_ns(coding(rate)->bits, bytes);
	if (!rate.ht)
		return PREAMBLE + symbols + EXTENSION;
	if (rate.short_guard)	/* symbols of 3.6 µs, ended on the grid of 4 */
		symbols = (symbols * 9 / 10 + SYMBOL_US * US - 1) / (SYMBOL_US * US) * SYMBOL_US * US;
	return HT_PREAMBLE + symbols + EXTENSION;
}

int64_t air_ns(struct rate rate, int bytes)
{
	return whole_ns(rate, bytes + FCS_BYTES);
}

/* The basic rate that answers: 6, 12 or 24 Mbit/s, none faster than what is answered. */
static struct rate answering(struct rate rate)
{
	int bits;

	if (is_cck(rate))
		return (struct rate){ .index = 0 };
	bits = coding(rate)->bits;
	return (struct rate){ .index = bits >= 96 ? 8 : bits >= 48 ? 6 : 4 };
}

/* With its answer, if it has one; `bytes` are all that follow one preamble. */
int64_t exchange_ns(struct rate rate, int bytes, int answer_bytes)
{
	struct rate answer = answering(rate);
	int64_t length = whole_ns(rate, bytes);

	if (answer_bytes)
		length += SIFS + whole_ns(answer, answer_bytes);
	if (rate.rts)
		length += whole_ns(answer, RTS_BYTES) + whole_ns(answer, CTS_BYTES) + 2 * SIFS;
	return length;
}

static double raw_error(int points, double snr)
{
	switch (points) {
	case 2:
		return 0.5 * erfc(sqrt(snr));
	case 4:
		return 0.5 * erfc(sqrt(snr / 2));
	case 16:
		return 0.75 * 0.5 * erfc(sqrt(snr / 10));
	default:
		return 7.0 / 12 * 0.5 * erfc(sqrt(snr / 42));
	}
}

static double decoded_error(int code, double raw)
{
	const struct weights *w = &WEIGHTS[code];
	double d = sqrt(4 * raw * (1 - raw)), sum = 0;

	for (int i = 0; i < TERMS; i++)
		sum += w->bits[i] * pow(d, w->first + i * w->step);
	sum /= 2 * code;
	return sum < 1 ? sum : 1;
}

/* 802.11b's are for scanning only: all are taken as DBPSK, spread over 22 MHz. */
double chance(struct rate rate, double signal_dbm, int bytes)
{
	double snr = pow(10, (signal_dbm - NOISE_DBM) / 10), error;

	if (is_cck(rate))
		error = 0.5 * exp(-snr * 22 / CCK_MBIT[rate.index & 3]);
	else
		error = decoded_error(coding(rate)->code, raw_error(coding(rate)->points, snr));
	return pow(1 - error, 8.0 * (bytes + FCS_BYTES));
}
