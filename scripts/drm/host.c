// Uses the render node of an emulated chip without a graphics driver: forks, signals, random requests, frames.
// (scripts/drm-forks, scripts/drm-hammer and crates/cli/tests/drm.rs compile and run this.)
//
//   host exit                         exit(7) in a signal handler, in the middle of a submission
//   host handler                      forks in a signal handler, in the middle of a submission
//   host forks COUNT SEED             forks at random moments while threads submit; children use the node
//   host child                        a forked child submits 3 times, its parent twice
//   host hammer SECONDS SEED THREADS  random requests and submissions
//   host flips COUNT [BYTES]          shows frames, with a file size limit of BYTES
//   host video                        shows two frames of one size and one of another, and then kills itself
//   host names COUNT                  sends COUNT different requests that the node does not implement
//   host resets COUNT                 submissions that reset the chip
//
// `hammer` also works with chips of the `nouveau` driver. The other commands need a chip of the `radeon` driver.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct create { uint64_t size, alignment; uint32_t handle, domain, flags, padding; };
struct close_handle { uint32_t handle, padding; };
struct submit { uint32_t count, id; uint64_t chunks, gart_limit, vram_limit; };
struct chunk { uint32_t id, words; uint64_t address; };
struct info { uint32_t request, padding; uint64_t value; };
struct new { uint32_t handle, domain; uint64_t size, offset, map; uint32_t tile_mode, tile_flags, hint, alignment; };
struct version { int32_t numbers[4]; uint64_t name_length, name, rest[4]; };
struct push_buffer { uint64_t own; uint32_t handle, read, write, valid, presumed, domain; uint64_t offset; };
struct push_relocation { uint32_t into, offset, buffer, flags, data, if_vram, if_system; };
struct push_segment { uint32_t buffer, padding; uint64_t offset, length; };
struct push {
  uint32_t channel, buffer_count; uint64_t buffers; uint32_t relocation_count, segment_count;
  uint64_t relocations, segments; uint32_t suffix[2]; uint64_t free[2];
};
struct mode { uint32_t clock; uint16_t across[5], down[5]; uint32_t refresh, flags, kind; char name[32]; };
struct crtc { uint64_t connectors; uint32_t count, crtc, framebuffer, x, y, gamma, valid; struct mode mode; };
struct dumb { uint32_t height, width, bits, flags, handle, pitch; uint64_t size; };
struct map_dumb { uint32_t handle, padding; uint64_t offset; };
struct framebuffer { uint32_t id, width, height, pitch, bits, depth, handle; };
struct flip { uint32_t crtc, framebuffer, flags, padding; uint64_t user; };

#define REQUEST(number, type) _IOC(_IOC_READ | _IOC_WRITE, 'd', number, sizeof(type))
#define CREATE REQUEST(0x5d, struct create)
#define CLOSE REQUEST(0x09, struct close_handle)
#define SUBMIT REQUEST(0x66, struct submit)
#define INFO REQUEST(0x67, struct info)

enum { WORDS = 65536, THREADS = 64 };
/* A packet that does nothing: the header, and the one word of its payload. */
enum { NOP = 0xc0001000 };

static int node, nouveau;
static uint32_t shared;

static void failed(const char *what) {
  perror(what);
  exit(2);
}

/* Creates a buffer. Returns its handle, or the error as a negative number. */
static int created(uint64_t size) {
  if (nouveau) {
    struct new new = { .domain = 2, .size = size };
    return ioctl(node, REQUEST(0x80, struct new), &new) ? -errno : (int)new.handle;
  }
  struct create create = { .size = size, .domain = 4 };
  return ioctl(node, CREATE, &create) ? -errno : (int)create.handle;
}

static int submitted(uint32_t *words, uint32_t count, uint32_t handle) {
  uint32_t relocation[4] = { handle, 0, 4, 0 };
  struct chunk commands = { 2, count, (uint64_t)words }, relocations = { 1, 4, (uint64_t)relocation };
  uint64_t list[2] = { (uint64_t)&commands, (uint64_t)&relocations };
  struct submit submit = { .count = 2, .chunks = (uint64_t)list };
  return ioctl(node, SUBMIT, &submit) ? -errno : 0;
}

/* Submits words of a buffer, with a relocation, on a chip of the `nouveau` driver. */
static int pushed(uint32_t *words, uint32_t count, uint32_t handle, uint64_t random) {
  struct new info = { .handle = handle };
  if (ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x84, 40), &info)) return -errno;
  uint32_t *there = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, node, info.map);
  if (there == MAP_FAILED) return -errno;
  memcpy(there, words, count * sizeof *words);
  munmap(there, 65536);
  struct push_buffer buffer = { .handle = handle };
  struct push_relocation relocation = { .offset = random % 65536, .flags = random >> 20 & 7, .data = random >> 32 };
  struct push_segment segment = { .length = count * sizeof *words };
  struct push push = {
    .channel = 1, .buffer_count = 1, .buffers = (uint64_t)&buffer, .relocation_count = random >> 16 & 1, .segment_count = 1,
    .relocations = (uint64_t)&relocation, .segments = (uint64_t)&segment,
  };
  return ioctl(node, REQUEST(0x81, struct push), &push) ? -errno : 0;
}

/* The generator xorshift64*. Every thread has a separate state. */
static uint64_t next(uint64_t *state) {
  *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

static void *submit_forever(void *unused) {
  uint32_t *words = malloc(WORDS * sizeof *words);
  for (int at = 0; at < WORDS; at += 2) words[at] = NOP, words[at + 1] = 0;
  for (;;) submitted(words, WORDS, shared);
  return unused;
}

static void exit_now(int unused) {
  (void)unused;
  exit(7);
}

static volatile int handled;

static void fork_now(int unused) {
  (void)unused;
  int before = errno;
  pid_t child = fork();
  if (child == 0) {
    /* In the child, the copy of the library is also in the middle of a request. */
    int answer = created(65536);
    _exit(answer == -EDEADLK || answer > 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  handled += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 1000;
  errno = before;
}

/* The requests of a child. A hang is a failure. After fork(), an error is also a failure. */
static int use(int strict) {
  int handle = created(65536);
  uint32_t words[2] = { NOP, 0 };
  int answer = handle > 0 ? submitted(words, 2, handle) : handle;
  return strict && answer ? 1 : 0;
}

static int forks(int count, uint64_t seed) {
  pthread_t thread;
  for (int number = 0; number < 2; number++)
    if (pthread_create(&thread, 0, submit_forever, 0)) failed("pthread_create");
  int ended[4] = { 0 }, hung[4] = { 0 }, wrong[4] = { 0 };
  const char *names[4] = { "fork", "clone", "vfork", "posix_spawn" };
  for (int number = 0; number < count; number++) {
    usleep(next(&seed) % 3000);
    /* Most children are created by fork. */
    int kind = number % 8 < 5 ? 0 : number % 8 - 4;
    pid_t child = -1;
    char *const arguments[] = { "true", 0 };
    switch (kind) {
    case 0: child = fork(); if (!child) _exit(use(1)); break;
    case 1: child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); if (!child) syscall(SYS_exit_group, use(0)); break;
    case 2: child = vfork(); if (!child) _exit(0); break;
    case 3: if (posix_spawnp(&child, "true", 0, 0, arguments, environ)) failed("posix_spawn"); break;
    }
    if (child < 0) failed(names[kind]);
    int status = 0, waits = 0;
    while (waitpid(child, &status, WNOHANG) != child && ++waits < 10000) usleep(1000);
    if (waits == 10000) {
      hung[kind]++;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ended[kind]++;
    else wrong[kind]++;
  }
  int bad = 0;
  for (int kind = 0; kind < 4; kind++) {
    printf("%s: %d ended, %d hung, %d failed\n", names[kind], ended[kind], hung[kind], wrong[kind]);
    bad += hung[kind] + wrong[kind];
  }
  fflush(stdout);
  /* The threads do not end. */
  _exit(bad != 0);
}

static double seconds;
static uint64_t first_seed;
static uint64_t asked[THREADS], answered[THREADS];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *hammer(void *argument) {
  uint64_t number = (uint64_t)argument, state = first_seed * 0x9e3779b97f4a7c15ull + number + 1;
  uint32_t handles[64] = { 0 }, words[64];
  /* Memory for addresses in arguments. It is long enough for the answer to any request. */
  uint64_t *room = calloc(1, 1 << 16);
  const double end = now() + seconds;
  while (now() < end) {
    asked[number]++;
    uint32_t *handle = &handles[next(&state) % 64];
    switch (next(&state) % 6) {
    case 0: {
      int made = created(next(&state) % (1 << 18));
      if (made > 0) *handle = made, answered[number]++;
      break;
    }
    case 1: {
      struct close_handle closed = { *handle, 0 };
      answered[number] += ioctl(node, CLOSE, &closed) == 0;
      break;
    }
    case 2: case 3: {
      /* Packets of random kinds with random words. Some have the address of a register and a relocation. */
      uint32_t count = 1 + next(&state) % 60;
      for (uint32_t at = 0; at < count; at++) words[at] = next(&state);
      if (nouveau) {
        /* Methods of the objects of eight subchannels. A packet has consecutive methods, or one method several times. */
        for (uint32_t at = 0; at < count; ) {
          uint32_t length = next(&state) % 4;
          words[at] = (next(&state) & 1) << 30 | length << 18 | (next(&state) & 7) << 13 | (next(&state) & 0x1ffc);
          at += 1 + length;
        }
        answered[number] += pushed(words, count, *handle, next(&state)) == 0;
        break;
      }
      for (uint32_t at = 0; at + 1 < count; ) {
        uint32_t length = next(&state) % 4;
        words[at] = next(&state) % 4 ? 0xc0000000 | length << 16 | (next(&state) & 0xff) << 8 : (next(&state) & 0x1fff) | length << 16;
        at += 2 + length;
      }
      answered[number] += submitted(words, count, *handle) == 0;
      break;
    }
    default: {
      /* Any request of any size with small numbers. A field that could be an address has a valid address, or null. */
      uint64_t bytes[64];
      for (int at = 0; at < 64; at++) bytes[at] = next(&state) % 4 ? next(&state) % 70 : next(&state) % 2 ? (uint64_t)room : 0;
      unsigned request = next(&state) & 0xff, size = next(&state) % 160;
      answered[number] += ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'd', request, size), bytes) == 0;
    }
    }
  }
  free(room);
  return 0;
}

static int hammered(int threads) {
  pthread_t thread[THREADS];
  for (int number = 0; number < threads; number++)
    if (pthread_create(&thread[number], 0, hammer, (void *)(uint64_t)number)) failed("pthread_create");
  uint64_t all = 0, good = 0;
  for (int number = 0; number < threads; number++) {
    pthread_join(thread[number], 0);
    all += asked[number], good += answered[number];
  }
  printf("%llu requests, %llu answered\n", (unsigned long long)all, (unsigned long long)good);
  return 0;
}

/* A mode without borders. */
static struct mode sized(uint16_t width, uint16_t height) {
  return (struct mode){ .clock = 1, .across = { width, width, width, width }, .down = { height, height, height, height } };
}

static int flips(int count, long most) {
  struct dumb dumb = { .height = 64, .width = 64, .bits = 32 };
  if (ioctl(node, REQUEST(0xb2, struct dumb), &dumb)) failed("MODE_CREATE_DUMB");
  struct framebuffer framebuffer = { 0, 64, 64, dumb.pitch, 32, 24, dumb.handle };
  if (ioctl(node, REQUEST(0xae, struct framebuffer), &framebuffer)) failed("MODE_ADDFB");
  uint32_t connector = 3;
  struct crtc crtc = { (uint64_t)&connector, 1, 1, framebuffer.id, .valid = 1, .mode = sized(64, 64) };
  if (most >= 0) {
    struct rlimit limit = { most, most };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit)) failed("setrlimit");
  }
  for (int number = 0; number < count; number++) {
    struct flip flip = { .crtc = 1, .framebuffer = framebuffer.id };
    if (number == 0 ? ioctl(node, REQUEST(0xa2, struct crtc), &crtc) : ioctl(node, REQUEST(0xb0, struct flip), &flip)) failed("flip");
  }
  return 0;
}

/* A framebuffer of one color. */
static struct crtc painted(uint32_t width, uint32_t height, uint32_t color) {
  struct dumb dumb = { .height = height, .width = width, .bits = 32 };
  if (ioctl(node, REQUEST(0xb2, struct dumb), &dumb)) failed("MODE_CREATE_DUMB");
  struct map_dumb map = { .handle = dumb.handle };
  if (ioctl(node, REQUEST(0xb3, struct map_dumb), &map)) failed("MODE_MAP_DUMB");
  uint32_t *pixels = mmap(0, dumb.size, PROT_READ | PROT_WRITE, MAP_SHARED, node, map.offset);
  if (pixels == MAP_FAILED) failed("mmap");
  for (uint64_t at = 0; at < dumb.size / 4; at++) pixels[at] = color;
  struct framebuffer framebuffer = { 0, width, height, dumb.pitch, 32, 24, dumb.handle };
  if (ioctl(node, REQUEST(0xae, struct framebuffer), &framebuffer)) failed("MODE_ADDFB");
  static uint32_t connector = 3;
  return (struct crtc){ (uint64_t)&connector, 1, 1, framebuffer.id, .valid = 1, .mode = sized(width, height) };
}

static int video(void) {
  struct crtc frames[3] = { painted(64, 48, 0xff0000), painted(64, 48, 0x0000ff), painted(32, 16, 0x00ff00) };
  for (int at = 0; at < 3; at++) if (ioctl(node, REQUEST(0xa2, struct crtc), &frames[at])) failed("MODE_SETCRTC");
  return raise(SIGKILL);
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  const long first = count > 2 ? atol(arguments[2]) : 0, second = count > 3 ? atol(arguments[3]) : -1;
  node = open("/dev/dri/card0", O_RDWR);
  if (node < 0) failed("/dev/dri/card0");
  char name[16] = "";
  struct version version = { .name_length = sizeof name - 1, .name = (uint64_t)name };
  if (ioctl(node, REQUEST(0x00, struct version), &version)) failed("VERSION");
  nouveau = !strcmp(name, "nouveau");
  if (!strcmp(what, "hammer")) {
    seconds = first, first_seed = second;
    return hammered(count > 4 && atoi(arguments[4]) <= THREADS ? atoi(arguments[4]) : 8);
  }
  if (!strcmp(what, "flips")) return flips(first, second);
  if (!strcmp(what, "video")) return video();
  int handle = created(65536);
  if (handle < 0) failed("RADEON_GEM_CREATE");
  shared = handle;
  if (!strcmp(what, "exit")) {
    signal(SIGALRM, exit_now);
    ualarm(50000, 0);
    submit_forever(0);
  }
  if (!strcmp(what, "handler")) {
    signal(SIGALRM, fork_now);
    struct itimerval every = { { 0, 20000 }, { 0, 20000 } };
    setitimer(ITIMER_REAL, &every, 0);
    uint32_t *words = malloc(WORDS * sizeof *words);
    for (int at = 0; at < WORDS; at += 2) words[at] = NOP, words[at + 1] = 0;
    while (handled < 20) submitted(words, WORDS, shared);
    printf("handled %d\n", handled);
    return handled >= 1000;
  }
  if (!strcmp(what, "child")) {
    uint32_t words[2] = { NOP, 0 };
    pid_t child = fork();
    for (int number = 0; number < (child ? 2 : 3); number++) if (submitted(words, 2, shared)) return 1;
    int status = 0;
    return child && (waitpid(child, &status, 0) != child || status);
  }
  if (!strcmp(what, "forks")) return forks(first, second > 0 ? second : 1);
  for (long number = 0; number < first; number++) {
    if (!strcmp(what, "names")) {
      struct info info = { 0x10000 + number, 0, (uint64_t)&info };
      ioctl(node, INFO, &info);
    } else if (!strcmp(what, "resets")) {
      /* A packet that states more words than the submission has. */
      uint32_t words[2] = { 0xc0ff1000, 0 };
      submitted(words, 2, shared);
    }
  }
  return 0;
}
