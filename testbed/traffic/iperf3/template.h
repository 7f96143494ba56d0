/*
 * What the runner and a template agree on.  A request is one message: the arguments, an empty word
 * and the environment, each word ended by a zero byte, with four descriptors: standard input,
 * output and errors, and a network namespace.  The answer is the copy's process id (int32_t), or an
 * error below 0.
 */
#pragma once

#define TEMPLATE_BYTES 4096 /* of a request, at most: each copy gets a page of its own for it */
#define TEMPLATE_FILES 4
