/* Addresses that a program must not use are EFAULT, wherever they are named. */
#include "node.h"

static int node;
static char *page;

/* A page of which `bytes` are left, with a protection. No byte is 0, so that a text there has no end. The next page is
   reserved, so that nobody else maps it. */
static uint64_t end(int bytes, int protection) {
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
    memset(page, 'x', 4096);
    HOLDS(mprotect(page, 4096, protection) == 0);
    return (uint64_t)page + 4096 - bytes;
}

static int chunk_of(uint32_t words, uint64_t address, uint32_t id) {
    uint32_t nothing[2] = {0xc0001000, 0};
    struct chunk chunks[2] = {{id, words, address}, {2, 2, (uint64_t)nothing}};
    uint64_t list[2] = {(uint64_t)&chunks[0], (uint64_t)&chunks[1]};
    struct submit submit = {.chunks = id == 2 ? 1 : 2, .addresses = (uint64_t)list};
    return ioctl(node, CS, &submit);
}

int main(void) {
    node = opened();
    uint32_t handle = created(node, 65536);
    uint64_t bad[] = {0, 0x10, end(0, PROT_READ), end(2, PROT_READ | PROT_WRITE), end(64, PROT_NONE), 1ULL << 63, ~7ULL};
    for (unsigned at = 0; at < sizeof bad / sizeof *bad; at++) {
        uint64_t address = bad[at];
        void *argument = (void *)address;
        unsigned long requests[] = {GEM_CLOSE, GEM_CREATE, GEM_MMAP, SET_TILING, INFO, CS, CREATE_DUMB, ADDFB, SETCRTC,
            PAGE_FLIP, GETRESOURCES, GETCONNECTOR, REQUEST(0, struct version), REQUEST(0x5c, uint64_t[3]),
            REQUEST(0x0c, uint64_t[2]), REQUEST(0xb1, uint64_t[3])};
        for (unsigned number = 0; number < sizeof requests / sizeof *requests; number++)
            FAILS(ioctl(node, requests[number], argument), EFAULT);
        struct submit submit = {.chunks = 1, .addresses = address};
        FAILS(ioctl(node, CS, &submit), EFAULT);
        submit.addresses = (uint64_t)&address;
        FAILS(ioctl(node, CS, &submit), EFAULT);
        for (uint32_t id = 1; id <= 3; id++)
            FAILS(chunk_of(64, address & ~3ULL, id), EFAULT);
        struct info info = {.request = 0x11, .value = address};
        FAILS(ioctl(node, INFO, &info), EFAULT);
        uint32_t fb_handle;
        struct crtc crtc = {address, 1, .id = 1, .framebuffer = framebuffer(node, &fb_handle), .valid = 1, .mode = square()};
        FAILS(ioctl(node, SETCRTC, &crtc), EFAULT);
        for (int list = 0; list < 4; list++) {
            /* There are framebuffers: every list has an element. */
            struct resources asked = {0};
            asked.lists[list] = address;
            asked.counts[list] = 99;
            FAILS(ioctl(node, GETRESOURCES, &asked), EFAULT);
        }
        for (int list = 0; list < 2; list++) {
            /* The encoders come first, but the number of modes. */
            struct connector asked = {.id = 3};
            asked.lists[list] = address;
            asked.counts[list == 0 ? 2 : 0] = 99;
            FAILS(ioctl(node, GETCONNECTOR, &asked), EFAULT);
        }
        for (int text = 0; text < 3 && address; text++) {
            struct version version = {.texts = {99, 0, 99, 0, 99, 0}};
            version.texts[2 * text + 1] = address;
            FAILS(ioctl(node, REQUEST(0, struct version), &version), EFAULT);
        }
        FAILS(open(argument, O_RDWR), EFAULT);
    }
    /* The answer has no place in memory that is only read. The request was good. */
    struct gem_create create = {.size = 65536, .domain = 4};
    memcpy((char *)end(4096, PROT_READ | PROT_WRITE), &create, sizeof create);
    HOLDS(mprotect(page, 4096, PROT_READ) == 0);
    FAILS(ioctl(node, GEM_CREATE, page), EFAULT);
    struct info info = {.request = 0, .value = (uint64_t)page};
    FAILS(ioctl(node, INFO, &info), EFAULT);
    /* A request without an answer is taken from there. */
    struct gem_close close = {handle, 0};
    HOLDS(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    memcpy(page, &close, sizeof close);
    HOLDS(mprotect(page, 4096, PROT_READ) == 0);
    HOLDS(ioctl(node, GEM_CLOSE, page) == 0);
    /* A path that ends where its page does. */
    strcpy((char *)end(20, PROT_READ | PROT_WRITE), "/dev/dri/renderD128");
    HOLDS(open(page + 4096 - 20, O_RDWR) >= 0);
    strcpy(page + 4096 - 12, "/dev/absent");
    FAILS(open(page + 4096 - 12, O_RDWR), ENOENT);
    return 0;
}
