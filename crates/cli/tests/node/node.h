/* Requests of the node, as the kernel's drm.h, drm_mode.h, radeon_drm.h and nouveau_drm.h lay them out. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct gem_close { uint32_t handle, padding; };
struct gem_create { uint64_t size, alignment; uint32_t handle, domain, flags, padding; };
struct gem_mmap { uint32_t handle, padding; uint64_t offset, size, address; };
struct gem_tiling { uint32_t handle, flags, pitch; };
struct gem_busy { uint32_t handle, domain; };
struct info { uint32_t request, padding; uint64_t value; };
struct submit { uint32_t chunks, id; uint64_t addresses, gart_limit, vram_limit; };
struct chunk { uint32_t id, words; uint64_t address; };
struct version { int32_t numbers[3]; uint32_t padding; uint64_t texts[6]; };
struct dumb { uint32_t height, width, bits, flags, handle, pitch; uint64_t size; };
struct framebuffer { uint32_t id, width, height, pitch, bits, depth, handle; };
struct mode { uint32_t clock; uint16_t across[5], down[5]; uint32_t refresh, flags, kind; char name[32]; };
struct crtc { uint64_t connectors; uint32_t count, id, framebuffer, place[2], gamma, valid; struct mode mode; };
struct flip { uint32_t crtc, framebuffer, flags, padding; uint64_t user; };
struct resources { uint64_t lists[4]; uint32_t counts[4], sizes[4]; };
struct connector { uint64_t lists[4]; uint32_t counts[3], encoder, id, rest[7]; };
struct event { uint32_t kind, length; uint64_t user; uint32_t seconds, micros, frame, crtc; };
struct nouveau_new { uint32_t buffer[10], channel, alignment; };
struct nouveau_buffer { uint32_t handle, domain; uint64_t size, offset, map; uint32_t tile_mode, tile_flags; };
struct push_buffer { uint64_t private; uint32_t handle, read, write, valid, presumed, domain; uint64_t offset; };
struct pushbuf {
    uint32_t channel, buffer_count;
    uint64_t buffers;
    uint32_t relocation_count, segment_count;
    uint64_t relocations, segments;
    uint32_t suffix[2];
    uint64_t vram, gart;
};

#define REQUEST(number, type) _IOC(_IOC_READ | _IOC_WRITE, 'd', number, sizeof(type))
#define GEM_CLOSE _IOC(_IOC_WRITE, 'd', 0x09, sizeof(struct gem_close))
#define GEM_CREATE REQUEST(0x5d, struct gem_create)
#define GEM_MMAP REQUEST(0x5e, struct gem_mmap)
#define SET_TILING REQUEST(0x68, struct gem_tiling)
#define GEM_BUSY REQUEST(0x6a, struct gem_busy)
#define INFO REQUEST(0x67, struct info)
#define CS REQUEST(0x66, struct submit)
#define CREATE_DUMB REQUEST(0xb2, struct dumb)
#define ADDFB REQUEST(0xae, struct framebuffer)
#define RMFB REQUEST(0xaf, uint32_t)
#define SETCRTC REQUEST(0xa2, struct crtc)
#define GETCRTC REQUEST(0xa1, struct crtc)
#define PAGE_FLIP REQUEST(0xb0, struct flip)
#define GETRESOURCES REQUEST(0xa0, struct resources)
#define GETCONNECTOR REQUEST(0xa7, struct connector)
#define NOUVEAU_NEW REQUEST(0x80, struct nouveau_new)
#define NOUVEAU_INFO REQUEST(0x84, struct nouveau_buffer)
#define NOUVEAU_PUSHBUF REQUEST(0x81, struct pushbuf)

/* Prints the condition that does not hold, and ends the program. */
#define HOLDS(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "line %d: %s does not hold (%s)\n", __LINE__, #condition, strerror(errno));         \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)
#define FAILS(call, error) HOLDS((errno = 0, (long)(call) == -1) && errno == (error))

static inline int opened(void) {
    int node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    HOLDS(node >= 0);
    return node;
}

static inline uint32_t created(int node, uint64_t size) {
    struct gem_create create = {.size = size, .domain = 4};
    HOLDS(ioctl(node, GEM_CREATE, &create) == 0);
    return create.handle;
}

static inline int closed(int node, uint32_t handle) {
    struct gem_close close = {handle, 0};
    return ioctl(node, GEM_CLOSE, &close);
}

static inline uint64_t place(int node, uint32_t handle) {
    struct gem_mmap map = {.handle = handle};
    HOLDS(ioctl(node, GEM_MMAP, &map) == 0);
    return map.address;
}

static inline uint32_t *mapped(int node, uint32_t handle, uint64_t size) {
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, node, place(node, handle));
    HOLDS(start != MAP_FAILED);
    return start;
}

static inline int submitted(int node, uint32_t handle) {
    uint32_t commands[2] = {0xc0001000, 0}, relocation[4] = {handle, 0, 4, 0};
    struct chunk chunks[2] = {{2, 2, (uint64_t)commands}, {1, 4, (uint64_t)relocation}};
    uint64_t list[2] = {(uint64_t)&chunks[0], (uint64_t)&chunks[1]};
    struct submit submit = {.chunks = 2, .addresses = (uint64_t)list};
    return ioctl(node, CS, &submit);
}

/* Returns the bytes of video memory in use. */
static inline uint64_t used(int node) {
    uint64_t bytes = 0;
    struct info info = {.request = 0x1e, .value = (uint64_t)&bytes};
    HOLDS(ioctl(node, INFO, &info) == 0);
    return bytes;
}

/* Returns a framebuffer, and the handle of its buffer. */
static inline uint32_t framebuffer(int node, uint32_t *handle) {
    struct dumb dumb = {.height = 16, .width = 16, .bits = 32};
    HOLDS(ioctl(node, CREATE_DUMB, &dumb) == 0);
    struct framebuffer made = {0, 16, 16, dumb.pitch, 32, 24, dumb.handle};
    HOLDS(ioctl(node, ADDFB, &made) == 0);
    *handle = dumb.handle;
    return made.id;
}

/* Returns a mode of 16x16 pixels. */
static inline struct mode square(void) {
    return (struct mode){.clock = 1, .across = {16, 16, 16, 16}, .down = {16, 16, 16, 16}};
}

static inline int shown(int node, uint32_t framebuffer) {
    uint32_t connector = 3;
    struct crtc crtc = {(uint64_t)&connector, 1, .id = 1, .framebuffer = framebuffer, .valid = 1, .mode = square()};
    return ioctl(node, SETCRTC, &crtc);
}
