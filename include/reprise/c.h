#ifndef REPRISE_C_H
#define REPRISE_C_H
/* The C interface: saves and loads for programs in C, and for languages that call C. The library is
 * libreprise_c.so.
 *
 * Status. Every call that can fail returns 0, or the number of an error (rp_code). The numbers
 * never change, and a later version may add some. rp_last_error() has the details. Saves and loads
 * are collective: all ranks of a job make the same calls in the same order, and a call fails with
 * the same error on all of them.
 *
 * Structs. A struct that is passed to the library begins with its size, which the caller sets:
 *
 *     rp_save_options options = {.struct_size = sizeof options};
 *     options.directory = "run";
 *
 * All other fields may be 0, which means the default. A caller that was compiled with an earlier
 * version passes a smaller struct; what it lacks is 0. USAGE is returned for a size of 0, and for a
 * larger struct that has something other than 0 where this version knows no field. Fields named
 * `unused` are 0. In a struct that the library fills, only the fields within the given size are set.
 *
 * Texts are UTF-8 and end in a zero byte. What a call is given it copies, except for the memory of
 * tensors. What a handle returns is valid until the handle is freed or used in another call.
 *
 * Handles. One thread at a time may use a job, its states, saves and loads. A handle belongs to the
 * process that made it: in a forked child every call with it returns USAGE, and freeing it does
 * nothing. Freeing NULL does nothing. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RP_EXPORT __attribute__((visibility("default")))
#else
#define RP_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. It grows when something is added. What is declared here keeps its
 * meaning. */
#define RP_ABI_VERSION 3

/* Returns RP_ABI_VERSION of the library. A program may call what the library's version has. */
RP_EXPORT int32_t rp_abi_version(void);
/* Returns the version of the library, such as "0.2.0". */
RP_EXPORT const char* rp_version(void);

/* ---------------------------------------------------------------- errors */

/* Kinds of errors. reprise/error.hpp says what each means. */
enum rp_code {
  RP_OK = 0,
  RP_USAGE = 1,
  RP_NOT_FOUND = 2,
  RP_IO = 3,
  RP_NO_SPACE = 4,
  RP_LOCKED = 5,
  RP_UNSUPPORTED = 6,
  RP_TORN_FILE = 7,
  RP_REFUSED_NAME = 8,
  RP_PATH_ESCAPE = 9,
  RP_LIMIT = 10,
  RP_COVERAGE_GAP = 11,
  RP_CHUNK_OVERLAP = 12,
  RP_NO_WRITER = 13,
  RP_MULTI_WRITER = 14,
  RP_INTERRUPTED = 15,
  RP_NOT_STORED = 16,
  RP_NOT_REQUESTED = 17,
  RP_SHAPE_DRIFT = 18,
  RP_DTYPE_DRIFT = 19,
  RP_EXTENT_MISMATCH = 20,
  RP_COMMON_STATE_DIVERGES = 21,
  RP_LAYOUT_MISMATCH = 22,
  RP_STALE_PLAN = 23,
  RP_STALE_DISTRIBUTION = 24,
  RP_STALE_METADATA = 25,
  RP_CACHE_POISONED = 26,
  RP_LOAD_REJECTED = 27,
  RP_TRACKER_DANGLING = 28,
  RP_INCOMPLETE_SELECTED = 29,
  RP_CHECKSUM = 30,
  RP_PEER_FAILED = 31,
  RP_DEADLINE = 32,
  RP_COLLECTIVE_MISMATCH = 33,
  RP_INTERNAL = 34 /* a bug of the library, or memory ran out */
};

/* Returns the name of an error, such as "NOT_FOUND"; "OK" for 0, "UNKNOWN_77" for a number without
 * a name. The text is valid until the next call on this thread. */
RP_EXPORT const char* rp_code_name(int32_t code);

typedef struct rp_error {
  size_t struct_size;
  int32_t code;
  int32_t rank;        /* -1: unknown */
  int64_t offset;      /* byte offset in `file`; -1: unknown */
  const char* key;     /* of a tensor or an object; "" if unknown */
  const char* file;    /* "" if unknown */
  const char* message; /* a sentence without code and place */
  const char* what;    /* one line with everything */
} rp_error;

/* Returns the error of the last call on this thread that failed; its code is 0 if none has. Valid
 * until the next call on this thread. */
RP_EXPORT const rp_error* rp_last_error(void);

/* ---------------------------------------------------------------- job */

typedef struct rp_job rp_job;

/* Takes the bytes of the members of a group in rp_job_options.all_gather. */
typedef struct rp_gathered rp_gathered;
/* Hands over the bytes of the member at this place in the group, 0 .. count - 1; they are copied.
 * Once for each member, the own one included. */
RP_EXPORT int32_t rp_gathered_put(rp_gathered* gathered, size_t place, const void* bytes,
                                  size_t size);
/* Says why the gathering fails: an error, 0 meaning PEER_FAILED, and a sentence. */
RP_EXPORT int32_t rp_gathered_fail(rp_gathered* gathered, int32_t code, const char* message);

/* How the ranks of a job reach each other. */
enum rp_fabric {
  RP_ALONE = 0,     /* this process is the whole job */
  RP_CALLBACKS = 1, /* by all_gather of the caller's */
  RP_SOCKETS = 2    /* over TCP (reprise/socket.hpp) */
};

/* Whose memory it is. */
enum rp_memory {
  RP_DEVICE = 0, /* the job's device, which may be the CPU */
  RP_HOST = 1    /* the CPU */
};

typedef struct rp_job_options {
  size_t struct_size;
  const char* root;    /* checkpoints are below this directory, which need not exist yet */
  int64_t deadline_ns; /* longest wait for other ranks in one collective call; 0: 30 minutes */
  int32_t threads;     /* that write and read; 0: one a processor, at most 8 */
  int32_t device;      /* 0: the CPU; n + 1: CUDA device n, see rp_job_use_device */
  int32_t fabric;      /* rp_fabric */
  int32_t rank;        /* of this process, if `fabric` is not RP_ALONE */
  int32_t size;        /* number of ranks; 0: one */
  int32_t unused;
  void* context; /* first argument of all callbacks; lives as long as the job and its saves */
  /* Returns anything but 0 if the job is to stop, such as after Ctrl-C: all ranks then fail with
   * INTERRUPTED. Asked often, also while the job waits. May be NULL. */
  int32_t (*interrupted)(void* context);

  /* RP_CALLBACKS. Gathers what the members of a group pass, which differs in length. `members` are
   * their ranks in the job, and this rank is one of them. All of them make the same calls, in the
   * same order for each group. Returns 0 after it has handed over the bytes of all members
   * (rp_gathered_put), and anything else if that failed (rp_gathered_fail may say why). Called on
   * the thread that calls the library. The caller sees to it that it ends, after a deadline at the
   * latest. */
  int32_t (*all_gather)(void* context, const int32_t* members, size_t member_count,
                        const void* mine, size_t size, rp_gathered* gathered);

  /* RP_SOCKETS: see SocketOptions. The ranks meet at an address, or by `put` and `get`. */
  const char* address;       /* "host:port" of rank 0 */
  const char* job_name;      /* NULL: "reprise" */
  const char* bind;          /* NULL: "127.0.0.1" */
  int64_t meet_deadline_ns;  /* 0: 5 minutes */
  /* Leaves a text under a key for the other ranks. Returns 0, or anything else to give up. */
  int32_t (*put)(void* context, const char* key, const char* value);
  /* Looks for the text under a key. Returns 0 and sets *value, which stays valid until the next
   * callback; sets it to NULL if the key is not there yet. Anything but 0 gives up. */
  int32_t (*get)(void* context, const char* key, const char** value);

  const char* cuda_library; /* file with the code for CUDA; NULL: libreprise_c_cuda.so beside this
                               library. Since version 2 */
} rp_job_options;

/* Opens a job, collectively over its ranks, and sets *job. */
RP_EXPORT int32_t rp_job_open(const rp_job_options* options, rp_job** job);
/* Says on which device tensors with RP_DEVICE memory are from now on, by the number that
 * rp_job_options.device takes. Saves that have begun keep the one before. Not collective: each rank
 * has a device of its own, and may choose it when its first tensor there comes. The code for CUDA is
 * in a file of its own, which is opened when it is first needed. UNSUPPORTED, with what to do, if
 * that can't be opened or is of another version, if the driver is missing or too old, or if there is
 * no such device; the job then keeps the one before. Tensors that are not in memory of the device,
 * nor pinned, are refused with UNSUPPORTED and their key, unless they are said to be in RP_HOST
 * memory. A call that waits for the device for longer than half of deadline_ns fails with DEADLINE,
 * and so do all later ones. Since version 2. */
RP_EXPORT int32_t rp_job_use_device(rp_job* job, int32_t device);
/* Frees a job. Its saves in flight go on. */
RP_EXPORT void rp_job_free(rp_job* job);

/* ---------------------------------------------------------------- state */

/* The tensors and bytes of one rank, by key. What is saved is a checkpoint as
 * torch.distributed.checkpoint writes it, or with common state as Megatron-Core does. */
typedef struct rp_state rp_state;

RP_EXPORT int32_t rp_state_new(rp_state** state);
RP_EXPORT void rp_state_free(rp_state* state);

/* Finds the number of an element type by torch's name: "bfloat16", "float8_e4m3fn". The number is
 * that of this version of the library. UNSUPPORTED if there is no such type. */
RP_EXPORT int32_t rp_dtype(const char* name, int32_t* dtype);

/* Replica of a copy that is as good as those of other ranks; one of them is written. */
#define RP_ANY_COPY (-1)

/* A box of a tensor in this rank's memory. */
typedef struct rp_part {
  size_t struct_size;
  const int64_t* offset;  /* where the box begins in the tensor; one number per dimension */
  const int64_t* extent;  /* its size */
  const int64_t* strides; /* distances in elements; NULL: row-major */
  void* data;             /* the first element of the box; may be NULL if it is empty */
  int32_t memory;         /* rp_memory */
  int32_t unused;
} rp_part;

typedef struct rp_tensor {
  size_t struct_size;
  const char* key;
  int32_t dtype;        /* of rp_dtype() */
  int32_t ndim;
  const int64_t* shape; /* of the whole tensor; one number per dimension */
  const rp_part* parts; /* what this rank holds */
  size_t part_count;    /* may be 0 */
  int32_t replica;      /* RP_ANY_COPY, or 0 for the copy that is written */
  int32_t unused;
} rp_tensor;

/* Adds a tensor (State::add). The state does not copy its elements: a save reads that memory until
 * it is staged, and a load writes to it. It may have any number of dimensions, but all after the
 * seventh must be whole in each part and lie together in memory (UNSUPPORTED). */
RP_EXPORT int32_t rp_state_add(rp_state* state, const rp_tensor* tensor);

/* Adds many tensors at once. `words` holds for each tensor
 *
 *     bytes of its key, dtype, replica, ndim, number of parts, shape[ndim], and for each part
 *         memory, 1 if it has strides or 0, address, offset[ndim], extent[ndim], strides[ndim] if any
 *
 * and `keys` the keys one after another, without zero bytes between them. An error may leave some
 * of them added. */
RP_EXPORT int32_t rp_state_add_packed(rp_state* state, const int64_t* words, size_t word_count,
                                      const char* keys, size_t key_bytes);

/* Adds bytes that are stored as they are, under their key (State::add_bytes): what torch.save wrote
 * of something that is no tensor. */
RP_EXPORT int32_t rp_state_add_bytes(rp_state* state, const char* key, const void* bytes,
                                     size_t size, int32_t replica);
/* Sets *bytes and *size to the bytes under a key, as added or as a load has replaced them. Valid
 * until the state is changed. */
RP_EXPORT int32_t rp_state_bytes(const rp_state* state, const char* key, const void** bytes,
                                 size_t* size);

/* Lets a load take a tensor that is stored with another shape (State::allow_other_shape). Since
 * version 2. */
RP_EXPORT int32_t rp_state_allow_other_shape(rp_state* state, const char* key);

/* Sets the common state (State::common): what torch.save wrote of a dict, the same on all ranks. A
 * save then stores it as common.pt, and metadata.json, as Megatron-Core has them. No bytes: a load
 * gives back those that are stored, and Megatron-Core 0.19 and later store a list with the dict. A
 * load of a checkpoint without common state is then RP_NOT_STORED and fills nothing. Since version
 * 2. */
RP_EXPORT int32_t rp_state_set_common(rp_state* state, const void* bytes, size_t size);
/* Sets *bytes and *size to the common state, as set or as a load has replaced it; to NULL and 0 if
 * there is none. Valid until the state is changed. Since version 2. */
RP_EXPORT int32_t rp_state_common(const rp_state* state, const void** bytes, size_t* size);

/* Says where keys belong in a nested state dict (State::set_path). `words` holds for each key
 *
 *     bytes of the key, number of steps, and for each step
 *         0 and the bytes of a name, or 1 and a position in a list
 *
 * and `texts` the key and its names, one after another, for each key. */
RP_EXPORT int32_t rp_state_set_paths(rp_state* state, const int64_t* words, size_t word_count,
                                     const char* texts, size_t text_bytes);

/* Sets digests[i] to the digest of what this rank holds of the state's tensor number i, in the order
 * in which they were added: a hash of the tensor's key, its dtype, and the position and the bits of
 * each element, as docs/trainers.md defines it. Digests of parts that don't overlap add up, modulo
 * 2^64, to that of the whole tensor. `count` is the number of the state's tensors. `job` says on
 * which device tensors with RP_DEVICE memory are, and may be NULL if that is the CPU; `stream` is as
 * in rp_save_options. Uses one core, and a buffer of some 100 KiB beside the tensors. Not
 * collective. Since version 3. */
RP_EXPORT int32_t rp_state_digests(rp_job* job, const rp_state* state, void* stream,
                                   uint64_t* digests, size_t count);

/* ---------------------------------------------------------------- save */

/* A save that has begun. */
typedef struct rp_save rp_save;

enum rp_checksums { RP_CRC32 = 0, RP_NO_CHECKSUMS = 1, RP_CRC32_AND_SHA256 = 2 };
enum rp_returns { RP_WHEN_COPIED = 0, RP_WHEN_QUEUED = 1 };
enum rp_read_back { RP_BEFORE_OLDER_GOES = 0, RP_READ_ALWAYS = 1, RP_READ_NEVER = 2 };
enum rp_planned { RP_FRESH = 0, RP_REPLANNED = 1, RP_REUSED = 2 };

/* SaveOptions of reprise/save.hpp, which says more. */
typedef struct rp_save_options {
  size_t struct_size;
  const char* directory;
  int64_t step;           /* if `has_step` is not 0 */
  int32_t has_step;
  int32_t checksums;      /* rp_checksums */
  const char* step_names; /* NULL: "iter_%07d" */
  int32_t keep;           /* number of iterations; 0: all */
  int32_t refuse_existing; /* not 0: USAGE if a checkpoint of that name exists */
  uint64_t staging_bytes; /* 0: the default */
  uint64_t batch_bytes;   /* 0: the default */
  int32_t returns;        /* rp_returns, for rp_begin_save alone */
  int32_t read_back;      /* rp_read_back */
  const char* structure;  /* NULL: "state"; "": no plan is kept */
  int32_t refuse_unequal; /* not 0: COMMON_STATE_DIVERGES if copies differ */
  int32_t compare_tensors; /* not 0: copies of tensors are compared, not only those of bytes */
  void* stream; /* a cudaStream_t of the job's device, on which the state is computed; NULL: the
                   legacy default stream */
} rp_save_options;

/* Bytes, or a box of a tensor, of which ranks hold copies that are not the same. Without a size of
 * its own: it never changes. */
typedef struct rp_unequal_copy {
  const char* key;
  const int64_t* offset; /* of the box */
  size_t ndim;           /* 0 for bytes */
  const int32_t* holders; /* ranks that hold another one than the writer */
  size_t holder_count;
  int32_t writer;
  int32_t unused;
} rp_unequal_copy;

/* SaveResult of reprise/save.hpp. */
typedef struct rp_save_result {
  size_t struct_size;
  const char* directory; /* relative to the job's root */
  uint64_t bytes;
  uint64_t tensors;
  uint64_t objects;
  uint64_t staging_bytes;
  uint64_t bound_staging;
  uint64_t bound_empty;
  uint64_t plan_signature;
  int32_t planned;            /* rp_planned */
  int32_t waited_for_staging; /* 1 or 0 */
  const rp_unequal_copy* unequal;
  size_t unequal_count;
  const char* const* log;
  size_t log_count;
} rp_save_result;

/* Begins a save and sets *save. Collective. */
RP_EXPORT int32_t rp_begin_save(rp_job* job, const rp_state* state, const rp_save_options* options,
                                rp_save** save);
/* The same, and waits until the checkpoint is committed; takes less memory. Collective. */
RP_EXPORT int32_t rp_save_all(rp_job* job, const rp_state* state, const rp_save_options* options,
                              rp_save** save);
/* Waits until the state has been copied and may change. Not collective. */
RP_EXPORT int32_t rp_save_wait_for_staging(rp_save* save);
/* Sets *committed to 1 once the checkpoint is committed, and to 0 before. Collective; never waits
 * for a rank that still writes. */
RP_EXPORT int32_t rp_save_poll(rp_save* save, int32_t* committed);
/* Waits for all ranks, commits, and fills *result, which may be NULL. Collective; a second call
 * returns the same result. */
RP_EXPORT int32_t rp_save_finish(rp_save* save, rp_save_result* result);
/* Frees a save. If it is not committed, waits for its writes and leaves no checkpoint. */
RP_EXPORT void rp_save_free(rp_save* save);

/* ---------------------------------------------------------------- load */

/* What a load has found. */
typedef struct rp_load rp_load;

/* How a load reacts if requested and stored keys differ: Strictness of reprise/load.hpp. */
enum rp_strictness {
  RP_RAISE_ALL = 0,
  RP_RAISE_UNEXPECTED = 1,
  RP_ASSUME_OK_UNEXPECTED = 2,
  RP_LOG_UNEXPECTED = 3,
  RP_LOG_ALL = 4,
  RP_RETURN_UNEXPECTED = 5,
  RP_RETURN_ALL = 6,
  RP_IGNORE_ALL = 7
};

/* LoadOptions of reprise/load.hpp, which says more. */
typedef struct rp_load_options {
  size_t struct_size;
  const char* directory;
  const char* step_names; /* NULL: "iter_%07d" */
  const char* const* excused;
  size_t excused_count;
  int32_t strictness;       /* rp_strictness */
  int32_t verify_checksums; /* not 0: compares with the stored CRC-32 */
  int32_t newest_whole;     /* not 0: goes on to the next older one if one is damaged; verifies */
  int32_t read_once;        /* not 0: one rank reads what several need, and sends it */
  int32_t if_any;           /* not 0: no error if nothing was ever committed (load_if_any) */
  int32_t unused;
  uint64_t staging_bytes;   /* 0: the default */
  void* stream;             /* as in rp_save_options; what it gets next runs after the load */
} rp_load_options;

/* LoadResult of reprise/load.hpp. */
typedef struct rp_load_result {
  size_t struct_size;
  int32_t found;    /* 0: there is no checkpoint (if_any), and the rest is empty */
  int32_t has_step; /* 1 or 0 */
  int64_t step;
  const char* directory; /* relative to the job's root */
  uint64_t tensors;
  uint64_t objects;
  uint64_t elements;
  uint64_t bytes_read;    /* of elements that were delivered to this rank */
  uint64_t bytes_for_all; /* that this rank read for all (read_once) */
  uint64_t bytes_needed;
  uint64_t peak_staging;
  uint64_t bound_staging;
  uint64_t bound_empty;
  uint64_t metadata_bytes;
  uint64_t records_verified;
  const char* const* not_stored;
  size_t not_stored_count;
  const char* const* not_requested;
  size_t not_requested_count;
  const char* const* excused;
  size_t excused_count;
  const char* const* fell_back_from;
  size_t fell_back_from_count;
  const int64_t* damaged; /* iterations of those */
  size_t damaged_count;
  const char* const* log;
  size_t log_count;
} rp_load_result;

/* Fills the tensors and the bytes of a state, sets *load, which owns what is in *result, and fills
 * *result. Collective. */
RP_EXPORT int32_t rp_load_all(rp_job* job, rp_state* state, const rp_load_options* options,
                              rp_load** load, rp_load_result* result);
RP_EXPORT void rp_load_free(rp_load* load);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
