/*
 * Preloaded into an iperf3 whose data go over IPv6: its control connection goes over IPv4.
 *
 * The control network is of IPv4 (testbed/plan/control_network.py).  iperf3 connects to one address
 * for both; a socket that it has not bound to a port (--cport) is the control connection's, and is
 * connected to CONTROL_ADDRESS, as an address of IPv4 in one of IPv6.  The server listens on both.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static int is_bound(int fd)
{
	struct sockaddr_in6 here;
	socklen_t size = sizeof(here);

	return getsockname(fd, (struct sockaddr *)&here, &size) || here.sin6_port;
}

int connect(int fd, const struct sockaddr *to, socklen_t size)
{
	int (*real)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	const char *address = getenv("CONTROL_ADDRESS");
	struct sockaddr_in6 mapped;
	struct in_addr four;

	if (!address || to->sa_family != AF_INET6 || is_bound(fd) ||
	    inet_pton(AF_INET, address, &four) != 1)
		return real(fd, to, size);
	mapped = *(const struct sockaddr_in6 *)to;
	mapped.sin6_addr = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	*(struct in_addr *)&mapped.sin6_addr.s6_addr[12] = four;
	return real(fd, (struct sockaddr *)&mapped, sizeof(mapped));
}
