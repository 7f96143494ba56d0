/* What the files of the runner share. runner.c says what a programme is. */
#ifndef RUNNER_H
#define RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NS_PER_S 1000000000LL
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* An instruction's words; the first is its name. */
struct words {
	char **at;
	int count;
};

/* runner.c */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
void *grown(void *array, size_t count, size_t size); /* room for one more than `count` */
int64_t integer(const char *word);
unsigned char *bytes_of(const char *hex, size_t *size);

/* answers.c */
void answer(const void *data, size_t size); /* adds to the answer of the current instruction */
void answer_file(int fd);
void begin_answer(int instruction);
void answer_failure(int instruction, const char *text);
void open_answers(const char *path);
void write_answers(void);

/* clock.c */
int64_t now_ns(void); /* CLOCK_MONOTONIC */
int64_t trial_ns(int64_t monotonic_ns);
int64_t zero_ns(void);
void sleep_until(int64_t monotonic_ns);
void rest(void);
void begin_clock(struct words words);
void set_zero(struct words words);
void wait_until(struct words words);
void shift_clock(int64_t planned_ns);

/* nodes.c */
#define HOME "-" /* where the runner was started */
void make_node(struct words words);
void enter(const char *node);
int node_descriptor(const char *node);

/* programs.c */
void set_environment(struct words words);
void start_program(struct words words);
void run_program(struct words words);
void await_program(struct words words);
void signal_program(struct words words);
void end_program(struct words words);
void kill_programs(void);
bool have_ended(char **programs, int count);
pid_t pid_of(const char *program);
void watch_children(void);
void hold_children(bool hold);
void add_program(const char *id, pid_t pid);
void start_silently(const char *id, char **argv, int count, char **variables, int number);
char **environment_with(char **more, int count);
int opened(const char *path, int flags);

/* templates.c */
void start_template(struct words words);
void copy_template(struct words words);

/* files.c */
void write_file(struct words words);
void read_files(struct words words);
void swap_file(struct words words);
void unswap_files(struct words words);
void offloads(struct words words);
char *with_pids(const char *text); /* {pid:ID} is a program's process id */

/* netlink.c */
int netlink_socket(const char *node, int protocol);
ssize_t receive(int fd); /* into `received` */
extern unsigned char received[];
bool listens(const char *node, int port);
void send_request(struct words words);
void dump_objects(struct words words);
void ask_object(struct words words);
void keep_object(struct words words);
void change_object(struct words words);

/* sockets.c */
void set_control(struct words words);

/* bpf.c */
void make_array(struct words words);
void load_bpf_program(struct words words);
void read_array(struct words words);
int bpf_descriptor(const char *id);

/* captures.c */
void begin_capture(struct words words);
void end_capture(struct words words);

/* echo.c */
void echo(struct words words);

/* samples.c */
void open_samples(struct words words);
void add_probe(struct words words);
void rehearse(struct words words);
void set_interval(struct words words);
void sample(struct words words);
int64_t sample_while_waiting(int64_t until_ns); /* when the next sample is due */
void write_samples(void);

#endif
