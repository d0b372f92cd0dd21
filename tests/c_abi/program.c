/* Saves and loads through the C interface, below the current directory, and checks what it says of
 * mistakes. Ends with 0 if all is as it should be. */
#include <reprise/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)                                                    \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition, \
              rp_last_error()->what);                                        \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

enum { ROWS = 6, COLUMNS = 4 };

/* Returns a job of this process alone. */
static rp_job* open_job(void) {
  rp_job_options options = {.struct_size = sizeof options};
  rp_job* job = NULL;
  options.root = "ckpt";
  EXPECT(rp_job_open(&options, &job) == RP_OK);
  return job;
}

/* Adds a matrix: its upper half stands as it is, its lower half transposed. */
static void add_matrix(rp_state* state, float* upper, float* lower) {
  const int64_t shape[] = {ROWS, COLUMNS}, extent[] = {ROWS / 2, COLUMNS};
  const int64_t first[] = {0, 0}, second[] = {ROWS / 2, 0}, turned[] = {1, ROWS / 2};
  rp_part parts[2] = {{.struct_size = sizeof parts[0]}, {.struct_size = sizeof parts[0]}};
  rp_tensor tensor = {.struct_size = sizeof tensor};
  parts[0].offset = first;
  parts[0].extent = extent;
  parts[0].data = upper;
  parts[1] = parts[0];
  parts[1].offset = second;
  parts[1].strides = turned;
  parts[1].data = lower;
  tensor.key = "matrix";
  EXPECT(rp_dtype("float32", &tensor.dtype) == RP_OK);
  tensor.ndim = 2;
  tensor.shape = shape;
  tensor.parts = parts;
  tensor.part_count = 2;
  tensor.replica = RP_ANY_COPY;
  EXPECT(rp_state_add(state, &tensor) == RP_OK);
  EXPECT(rp_state_add(state, &tensor) == RP_USAGE);
  EXPECT(strcmp(rp_last_error()->key, "matrix") == 0);
}

enum { TENSORS = 4 };

/* Adds two vectors of three elements in one buffer, and says where they belong. A buffer that is
 * cut short has added its first one. */
static void add_packed(rp_state* state, int64_t* a, double* b) {
  int32_t whole = 0, real = 0;
  EXPECT(rp_dtype("int64", &whole) == RP_OK && rp_dtype("float64", &real) == RP_OK);
  {
    const int64_t words[] = {1, whole, RP_ANY_COPY, 1, 1, 3, RP_HOST, 0, (int64_t)(intptr_t)a, 0, 3,
                             2, real,  RP_ANY_COPY, 1, 1, 3, RP_HOST, 1, (int64_t)(intptr_t)b, 0, 3,
                             2};
    const size_t count = sizeof words / sizeof words[0];
    EXPECT(rp_state_add_packed(state, words, count - 1, "abb", 3) == RP_USAGE);
    EXPECT(rp_state_add_packed(state, words, count, "xyy", 3) == RP_OK);
  }
  {
    const int64_t path[] = {1, 3, 0, 5, 1, 2, 0, 1};
    EXPECT(rp_state_set_paths(state, path, 8, "xmodelx", 7) == RP_OK);
    EXPECT(rp_state_set_paths(state, path, 8, "xmodelx!", 8) == RP_USAGE);
  }
}

struct Contents {
  float upper[ROWS / 2 * COLUMNS], lower[ROWS / 2 * COLUMNS];
  int64_t a[3];
  double b[5]; /* every second one is stored */
};

static rp_state* state_of(struct Contents* contents, const char* bytes) {
  rp_state* state = NULL;
  EXPECT(rp_state_new(&state) == RP_OK);
  add_matrix(state, contents->upper, contents->lower);
  add_packed(state, contents->a, contents->b);
  EXPECT(rp_state_add_bytes(state, "step", bytes, strlen(bytes), RP_ANY_COPY) == RP_OK);
  return state;
}

static void save(rp_job* job, const rp_state* state, int64_t step) {
  rp_save_options options = {.struct_size = sizeof options};
  rp_save_result result = {.struct_size = sizeof result};
  rp_save* saving = NULL;
  int32_t committed = 0;
  options.directory = "run";
  options.has_step = 1;
  options.step = step;
  options.step_names = "step-%d";
  options.returns = RP_WHEN_QUEUED;
  options.keep = 2;
  EXPECT(rp_begin_save(job, state, &options, &saving) == RP_OK);
  EXPECT(rp_save_wait_for_staging(saving) == RP_OK);
  EXPECT(rp_save_poll(saving, &committed) == RP_OK);
  EXPECT(rp_save_finish(saving, &result) == RP_OK);
  EXPECT(rp_save_poll(saving, &committed) == RP_OK && committed == 1);
  EXPECT(result.tensors == TENSORS && result.objects == 1 && result.bytes > 0);
  EXPECT(strncmp(result.directory, "run/step-", 9) == 0);
  rp_save_free(saving);
}

/* Loads into other memory and compares. */
static void load(rp_job* job, const struct Contents* saved) {
  struct Contents loaded;
  rp_load_options options = {.struct_size = sizeof options};
  rp_load_result result = {.struct_size = sizeof result};
  rp_load* handle = NULL;
  rp_state* state;
  const void* bytes = NULL;
  size_t size = 0;
  memset(&loaded, 0, sizeof loaded);
  loaded.b[1] = saved->b[1];
  loaded.b[3] = saved->b[3];
  state = state_of(&loaded, "?");
  options.directory = "run";
  options.step_names = "step-%d";
  options.newest_whole = 1;
  EXPECT(rp_load_all(job, state, &options, &handle, &result) == RP_OK);
  EXPECT(result.found == 1 && result.has_step == 1 && result.step == 3);
  EXPECT(result.tensors == TENSORS && result.objects == 1 && result.not_stored_count == 0);
  EXPECT(memcmp(&loaded, saved, sizeof loaded) == 0);
  EXPECT(rp_state_bytes(state, "step", &bytes, &size) == RP_OK);
  EXPECT(size == 5 && memcmp(bytes, "three", 5) == 0);
  EXPECT(rp_state_bytes(state, "no", &bytes, &size) == RP_NOT_FOUND);
  rp_load_free(handle);
  rp_state_free(state);
}

/* What is said of a load that finds nothing. */
static void load_nothing(rp_job* job) {
  rp_load_options options = {.struct_size = sizeof options};
  rp_load_result result = {.struct_size = sizeof result};
  rp_load* handle = NULL;
  rp_state* state = NULL;
  EXPECT(rp_state_new(&state) == RP_OK);
  options.directory = "none";
  EXPECT(rp_load_all(job, state, &options, &handle, &result) == RP_NOT_FOUND);
  EXPECT(handle == NULL && rp_last_error()->code == RP_NOT_FOUND);
  EXPECT(strncmp(rp_last_error()->what, "NOT_FOUND: ", 11) == 0);
  options.if_any = 1;
  EXPECT(rp_load_all(job, state, &options, &handle, &result) == RP_OK);
  EXPECT(handle != NULL && result.found == 0 && result.directory[0] == '\0');
  rp_load_free(handle);
  rp_state_free(state);
}

/* A struct of a version that knew less, or that knows more. */
static void sizes(void) {
  struct {
    rp_job_options known;
    int64_t more;
  } later = {.known = {.struct_size = sizeof later}};
  rp_job* job = NULL;
  later.known.root = "ckpt";
  EXPECT(rp_job_open(&later.known, &job) == RP_OK);
  rp_job_free(job);
  later.more = 1;
  EXPECT(rp_job_open(&later.known, &job) == RP_USAGE && job == NULL);
  later.known.struct_size = 0;
  EXPECT(rp_job_open(&later.known, &job) == RP_USAGE);
  EXPECT(rp_job_open(NULL, &job) == RP_USAGE);
  later.known.threads = -1; /* an earlier version did not have this field */
  later.known.struct_size = offsetof(rp_job_options, deadline_ns);
  EXPECT(rp_job_open(&later.known, &job) == RP_OK);
  rp_job_free(job);
  later.known.struct_size = sizeof later.known;
  EXPECT(rp_job_open(&later.known, &job) == RP_USAGE);
  later.known.threads = 1;
  later.known.device = 1;
  later.known.cuda_library = "/nowhere/cuda.so";
  EXPECT(rp_job_open(&later.known, &job) == RP_UNSUPPORTED);
  EXPECT(strstr(rp_last_error()->message, "/nowhere/cuda.so") != NULL);
}

/* Gathers for the only rank of a job; `context` counts the calls, and 100 calls are too many. */
static int32_t gather(void* context, const int32_t* members, size_t count, const void* mine,
                      size_t size, rp_gathered* gathered) {
  int* calls = context;
  EXPECT(count == 1 && members[0] == 0);
  EXPECT(rp_gathered_put(gathered, 1, mine, size) == RP_USAGE);
  if (++*calls > 100) {
    EXPECT(rp_gathered_fail(gathered, RP_DEADLINE, "rank 7 sleeps") == RP_OK);
    return 1;
  }
  return rp_gathered_put(gathered, 0, mine, size);
}

static int32_t interrupted(void* context) { return *(int*)context < 0; }

static void callbacks(const rp_state* state) {
  int calls = 0;
  rp_job_options options = {.struct_size = sizeof options};
  rp_save_options how = {.struct_size = sizeof how};
  rp_save_result result = {.struct_size = sizeof result};
  rp_job* job = NULL;
  rp_save* saving = NULL;
  options.root = "ckpt";
  options.fabric = RP_CALLBACKS;
  options.context = &calls;
  EXPECT(rp_job_open(&options, &job) == RP_USAGE);
  options.all_gather = gather;
  options.interrupted = interrupted;
  options.rank = 1;
  EXPECT(rp_job_open(&options, &job) == RP_USAGE);
  options.rank = 0;
  EXPECT(rp_job_open(&options, &job) == RP_OK);
  how.directory = "by-callbacks";
  EXPECT(rp_save_all(job, state, &how, &saving) == RP_OK);
  EXPECT(rp_save_finish(saving, &result) == RP_OK && calls > 3);
  rp_save_free(saving);
  calls = -1000;
  EXPECT(rp_save_all(job, state, &how, &saving) == RP_INTERRUPTED);
  calls = 100;
  EXPECT(rp_save_all(job, state, &how, &saving) == RP_DEADLINE && saving == NULL);
  EXPECT(strcmp(rp_last_error()->message, "rank 7 sleeps") == 0 && rp_last_error()->rank == 0);
  rp_job_free(job);
}

/* Where two ranks meet: a file for each key, in the directory that `context` names. */
static const char* path_of(const void* context, const char* key) {
  static char path[512];
  char* at = path + snprintf(path, sizeof path, "%s/", (const char*)context);
  snprintf(at, 256, "%s", key);
  for (; *at != '\0'; ++at) {
    if (*at == '/') *at = '_';
  }
  return path;
}

static int32_t put(void* context, const char* key, const char* value) {
  const char* path = path_of(context, key);
  char staged[600];
  FILE* file;
  snprintf(staged, sizeof staged, "%s.new", path);
  file = fopen(staged, "w");
  if (file == NULL || fputs(value, file) < 0 || fclose(file) != 0) return 1;
  return rename(staged, path);
}

static int32_t get(void* context, const char* key, const char** value) {
  static char text[4096];
  FILE* file = fopen(path_of(context, key), "r");
  *value = NULL;
  if (file == NULL) return 0;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  *value = text;
  return 0;
}

/* One of two ranks over TCP: each holds two rows of a matrix, and loads all four. */
static void socket_rank(int32_t rank) {
  rp_job_options options = {.struct_size = sizeof options};
  rp_save_options how = {.struct_size = sizeof how};
  rp_load_options back = {.struct_size = sizeof back};
  rp_load_result result = {.struct_size = sizeof result};
  rp_job* job = NULL;
  rp_state* state = NULL;
  rp_save* saving = NULL;
  rp_load* loading = NULL;
  int32_t dtype = 0;
  int32_t mine[4], all[8] = {0};
  int i;
  options.root = "ckpt";
  options.fabric = RP_SOCKETS;
  options.rank = rank;
  options.size = 2;
  options.put = put;
  options.get = get;
  options.context = (void*)"meet";
  EXPECT(rp_job_open(&options, &job) == RP_OK);
  for (i = 0; i < 4; ++i) mine[i] = 4 * rank + i;
  EXPECT(rp_dtype("int32", &dtype) == RP_OK);
  {
    const int64_t half[] = {
        1, dtype, RP_ANY_COPY, 2, 1, 4, 2, RP_HOST, 0, (int64_t)(intptr_t)mine, 2 * rank, 0, 2, 2};
    const int64_t whole[] = {1, dtype, RP_ANY_COPY, 2, 1, 4, 2, RP_HOST, 0, (int64_t)(intptr_t)all,
                             0, 0,     4,           2};
    EXPECT(rp_state_new(&state) == RP_OK);
    EXPECT(rp_state_add_packed(state, half, 14, "m", 1) == RP_OK);
    how.directory = "by-sockets";
    EXPECT(rp_save_all(job, state, &how, &saving) == RP_OK);
    rp_save_free(saving);
    rp_state_free(state);
    EXPECT(rp_state_new(&state) == RP_OK);
    EXPECT(rp_state_add_packed(state, whole, 14, "m", 1) == RP_OK);
  }
  back.directory = "by-sockets";
  back.read_once = 1;
  EXPECT(rp_load_all(job, state, &back, &loading, &result) == RP_OK);
  for (i = 0; i < 8; ++i) EXPECT(all[i] == i);
  EXPECT(result.bytes_needed == sizeof all && result.elements == 8);
  rp_load_free(loading);
  rp_state_free(state);
  rp_job_free(job);
}

static void sockets(void) {
  int status = 0;
  pid_t child;
  EXPECT(mkdir("meet", 0700) == 0);
  child = fork();
  alarm(60);
  socket_rank(child == 0);
  if (child == 0) _exit(0);
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  alarm(0);
}

/* A forked process refuses the handles of its parent. */
static void fork_one(rp_job* job, rp_state* state) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    rp_save_options options = {.struct_size = sizeof options};
    rp_save* saving = NULL;
    alarm(20); /* threads of the parent, for which it might wait, are not here */
    options.directory = "child";
    EXPECT(rp_save_all(job, state, &options, &saving) == RP_USAGE);
    EXPECT(strstr(rp_last_error()->message, "forked") != NULL);
    rp_state_free(state);
    rp_job_free(job);
    _exit(0);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* Common state makes of a checkpoint one of Megatron's. A vector that was stored with three elements
 * is loaded into the first of four. */
static void megatron(rp_job* job, const struct Contents* contents) {
  /* How torch.save began before version 1.6; the library does not look further. */
  static const unsigned char dict[24] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                       0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
  rp_save_options save_options = {.struct_size = sizeof save_options};
  rp_load_options load_options = {.struct_size = sizeof load_options};
  rp_state* state = state_of((struct Contents*)contents, "three");
  rp_save* saving = NULL;
  rp_load* loading = NULL;
  const void* bytes = dict;
  size_t size = 1;
  int64_t four[] = {-1, -1, -1, -1};
  int32_t whole = 0;
  EXPECT(rp_state_common(state, &bytes, &size) == RP_OK && bytes == NULL && size == 0);
  EXPECT(rp_state_set_common(state, NULL, 4) == RP_USAGE);
  EXPECT(rp_state_set_common(state, dict, sizeof dict) == RP_OK);
  save_options.directory = "megatron";
  EXPECT(rp_save_all(job, state, &save_options, &saving) == RP_OK);
  rp_save_free(saving);
  rp_state_free(state);
  EXPECT(access("ckpt/megatron/common.pt", R_OK) == 0);
  EXPECT(access("ckpt/megatron/metadata.json", R_OK) == 0);

  EXPECT(rp_state_new(&state) == RP_OK && rp_dtype("int64", &whole) == RP_OK);
  {
    const int64_t words[] = {1, whole, RP_ANY_COPY,            1, 1, 4, RP_HOST, 0,
                             (int64_t)(intptr_t)four, 0, 4};
    EXPECT(rp_state_add_packed(state, words, sizeof words / sizeof words[0], "x", 1) == RP_OK);
  }
  EXPECT(rp_state_set_common(state, NULL, 0) == RP_OK);
  load_options.directory = "megatron";
  load_options.strictness = RP_RAISE_UNEXPECTED;
  EXPECT(rp_load_all(job, state, &load_options, &loading, NULL) == RP_SHAPE_DRIFT);
  EXPECT(rp_state_allow_other_shape(state, "y") == RP_NOT_FOUND);
  EXPECT(rp_state_allow_other_shape(state, "x") == RP_OK);
  EXPECT(rp_load_all(job, state, &load_options, &loading, NULL) == RP_OK);
  EXPECT(four[2] == contents->a[2] && four[3] == -1);
  EXPECT(rp_state_common(state, &bytes, &size) == RP_OK && size == sizeof dict);
  EXPECT(memcmp(bytes, dict, size) == 0);
  rp_load_free(loading);
  rp_state_free(state);
}

/* The digest of a matrix, in two parts and turned. docs/trainers.md has the number. */
static void digests(rp_job* job) {
  float turned[] = {1, 3, 2, 4}, upper[] = {1, 2};
  int32_t dtype = 0;
  uint64_t found[2] = {7, 7};
  rp_state* state = NULL;
  EXPECT(rp_state_new(&state) == RP_OK && rp_dtype("float32", &dtype) == RP_OK);
  EXPECT(rp_state_digests(job, state, NULL, NULL, 0) == RP_OK);
  {
    const int64_t words[] = {
        7, dtype, RP_ANY_COPY, 2, 2, 2, 2,                               /* two parts */
        RP_HOST, 0, (int64_t)(intptr_t)upper, 0, 0, 1, 2,                /* the upper row */
        RP_HOST, 1, (int64_t)(intptr_t)(turned + 1), 1, 0, 1, 2, 1, 2}; /* the lower one, in columns */
    EXPECT(rp_state_add_packed(state, words, 23, "model.w", 7) == RP_OK);
  }
  EXPECT(rp_state_digests(NULL, state, NULL, found, 1) == RP_OK);
  EXPECT(found[0] == 0xa2f7d39de7b68a8a && found[1] == 7);
  found[0] = 0;
  EXPECT(rp_state_digests(job, state, NULL, found, 1) == RP_OK && found[0] == 0xa2f7d39de7b68a8a);
  EXPECT(rp_state_digests(job, state, NULL, found, 2) == RP_USAGE);
  EXPECT(rp_state_digests(job, state, NULL, NULL, 1) == RP_USAGE);
  EXPECT(rp_state_digests(job, state, found, found, 1) == RP_USAGE); /* the CPU has no streams */
  EXPECT(rp_state_digests(job, NULL, NULL, found, 1) == RP_USAGE);
  rp_state_free(state);
}

int main(void) {
  struct Contents contents;
  rp_job* job = open_job();
  rp_state* state;
  int i;
  EXPECT(rp_last_error()->code == RP_OK && rp_last_error()->rank == -1);
  EXPECT(rp_abi_version() == RP_ABI_VERSION && rp_version()[0] != '\0');
  EXPECT(strcmp(rp_code_name(RP_TORN_FILE), "TORN_FILE") == 0);
  memset(&contents, 0, sizeof contents);
  for (i = 0; i < ROWS / 2 * COLUMNS; ++i) contents.upper[i] = (float)i;
  for (i = 0; i < ROWS / 2 * COLUMNS; ++i) contents.lower[i] = (float)-i;
  for (i = 0; i < 3; ++i) contents.a[i] = INT64_MAX - i;
  for (i = 0; i < 5; ++i) contents.b[i] = i / 3.0;
  state = state_of(&contents, "three");
  for (i = 1; i <= 3; ++i) save(job, state, i);
  EXPECT(access("ckpt/run/step-3/.metadata", R_OK) == 0);
  EXPECT(access("ckpt/run/step-1", F_OK) != 0);
  load(job, &contents);
  load_nothing(job);
  megatron(job, &contents);
  digests(job);
  sizes();
  callbacks(state);
  fork_one(job, state);
  sockets();
  rp_state_free(state);
  rp_job_free(job);
  rp_job_free(NULL);
  rp_save_free(NULL);
  rp_load_free(NULL);
  return 0;
}
