/* Bytes on their way to a large file: one block is filled while a thread writes the other, past the page cache where
 * the system can (O_DIRECT). So the disk does not wait for who makes the bytes, and a file as large as a model drives
 * no other out of memory. */
#ifndef RUNTIME_FILES_STREAM_H
#define RUNTIME_FILES_STREAM_H

#include <stdbool.h>
#include <stddef.h>

struct stream;

/* A stream into `file`, from its beginning. NULL: no memory for it. */
struct stream *rt_stream_open(int file);

/* Adds bytes, which are copied. False with errno when what was added before could not be written. */
bool rt_stream_add(struct stream *stream, const void *bytes, size_t size);

/* Writes what is left and frees the stream; the file stays open. False with errno when something could not be written.
 */
bool rt_stream_end(struct stream *stream);

#endif
