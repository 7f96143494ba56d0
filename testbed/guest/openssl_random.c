/*
 * A provider of OpenSSL whose random numbers are what getrandom() returns.
 *
 * OpenSSL's own generators mix the time, the process and their addresses in memory into
 * what the kernel gives them.  An address depends on the length of a path or a user's
 * name, and so the keys in a trial's packets would.  The guest's kernel draws from the
 * trial's seed, so with this provider the keys do.
 *
 * The numbers are those of OpenSSL's <openssl/core_dispatch.h>, which are fixed; nothing
 * else of its headers is needed.
 */
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

struct entry {
	int id;
	void (*function)(void);
};

struct algorithm {
	const char *names, *properties;
	const struct entry *functions;
	const char *description;
};

struct parameter {
	const char *key;
	unsigned int type;
	void *data;
	size_t size, returned;
};

enum { TEARDOWN = 1024, QUERY_OPERATION = 1027 };
enum { OPERATION_RAND = 5 };
enum {
	NEW = 1, FREE, INSTANTIATE, UNINSTANTIATE, GENERATE,
	ENABLE_LOCKING = 8,
	GET_CONTEXT = 15
};
enum { READY = 1, STRENGTH_BITS = 256, MAX_BYTES = 1 << 16 };

static int instance;

static void *new_context(void *provider, void *parent, const void *calls)
{
	(void)provider, (void)parent, (void)calls;
	return &instance;
}

static void free_context(void *context)
{
	(void)context;
}

static int succeed(void)
{
	return 1;
}

static int generate(void *context, unsigned char *out, size_t size)
{
	(void)context;
	while (size) {
		ssize_t got = getrandom(out, size, 0);

		if (got < 0)
			return 0;
		out += got;
		size -= got;
	}
	return 1;
}

static int get_parameters(void *context, struct parameter *parameter)
{
	(void)context;
	for (; parameter->key; parameter++) {
		unsigned long value;

		if (!strcmp(parameter->key, "state"))
			value = READY;
		else if (!strcmp(parameter->key, "strength"))
			value = STRENGTH_BITS;
		else if (!strcmp(parameter->key, "max_request"))
			value = MAX_BYTES;
		else
			continue;
		if (parameter->size > sizeof(value))
			return 0;
		memcpy(parameter->data, &value, parameter->size); /* little-endian */
		parameter->returned = parameter->size;
	}
	return 1;
}

#define ENTRY(id, function) { id, (void (*)(void))(function) }

static const struct entry generator[] = {
	ENTRY(NEW, new_context),
	ENTRY(FREE, free_context),
	ENTRY(INSTANTIATE, succeed),
	ENTRY(UNINSTANTIATE, succeed),
	ENTRY(GENERATE, generate),
	ENTRY(ENABLE_LOCKING, succeed),
	ENTRY(GET_CONTEXT, get_parameters),
	{ 0, NULL }
};

static const struct algorithm generators[] = {
	{ "GETRANDOM", "provider=testbed", generator, NULL },
	{ NULL, NULL, NULL, NULL }
};

static const struct algorithm *query(void *provider, int operation, int *no_store)
{
	(void)provider;
	*no_store = 0;
	return operation == OPERATION_RAND ? generators : NULL;
}

static const struct entry functions[] = {
	ENTRY(TEARDOWN, free_context),
	ENTRY(QUERY_OPERATION, query),
	{ 0, NULL }
};

/* OpenSSL calls this by its name. */
int OSSL_provider_init(const void *core, const struct entry *calls,
		       const struct entry **out, void **provider);

int OSSL_provider_init(const void *core, const struct entry *calls,
		       const struct entry **out, void **provider)
{
	(void)core, (void)calls;
	*out = functions;
	*provider = &instance;
	return 1;
}
