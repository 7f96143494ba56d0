/* What iperf3's configure finds on Linux, without OpenSSL and SCTP, which no flow of ours uses. */
#define IPERF_VERSION "3.12"
#define PACKAGE_STRING "iperf " IPERF_VERSION
#define HAVE_CLOCK_GETTIME 1
#define HAVE_CPU_AFFINITY 1
#define HAVE_DAEMON 1
#define HAVE_DONT_FRAGMENT 1
#define HAVE_ENDIAN_H 1
#define HAVE_FLOWLABEL 1
#define HAVE_GETLINE 1
#define HAVE_INTTYPES_H 1
#define HAVE_IP_MTU_DISCOVER 1
#define HAVE_LINUX_TCP_H 1
#define HAVE_POLL_H 1
#define HAVE_SCHED_SETAFFINITY 1
#define HAVE_SENDFILE 1
#define HAVE_SO_BINDTODEVICE 1
#define HAVE_SO_MAX_PACING_RATE 1
#define HAVE_STDINT_H 1
#define HAVE_TCP_CONGESTION 1
#define HAVE_TCP_INFO_SND_WND 1
#define HAVE_TCP_USER_TIMEOUT 1
