/* Functions that change or read files fail on the node as on a device, and events are read from it. */
#include "node.h"

int main(void) {
    int node = open("/dev/dri/card0", O_RDWR | O_NONBLOCK);
    HOLDS(node >= 0);
    uint32_t handle = created(node, 65536), *words = mapped(node, handle, 65536), fb_handle;
    words[0] = 7;
    char bytes[1024] = "bytes";
    struct iovec part = {bytes, 5};
    FAILS(ftruncate(node, 0), EINVAL);
    FAILS(write(node, bytes, 5), EINVAL);
    FAILS(writev(node, &part, 1), EINVAL);
    FAILS(pwrite(node, bytes, 5, 0), EINVAL);
    HOLDS(syscall(SYS_write, node, bytes, 5) == -1);
    FAILS(fallocate(node, 3, 0, 65536), ENODEV);
    HOLDS(posix_fallocate(node, 0, 65536) != 0);
    HOLDS(lseek(node, 0, SEEK_END) == -1 && pread(node, bytes, 5, 0) == -1);
    FAILS(read(node, bytes, sizeof bytes), EAGAIN);
    HOLDS(fcntl(node, F_ADD_SEALS, 1) == -1);
    FAILS(mmap(NULL, 4096, PROT_READ, MAP_SHARED, node, 1 << 20), EINVAL);
    HOLDS(words[0] == 7 && words[65536 / 4 - 1] == 0);

    struct pollfd asked = {node, POLLIN, 0};
    HOLDS(poll(&asked, 1, 0) == 0);
    uint32_t id = framebuffer(node, &fb_handle);
    HOLDS(shown(node, id) == 0);
    struct flip flip = {.crtc = 1, .framebuffer = id, .flags = 1, .user = 0x123456789a};
    HOLDS(ioctl(node, PAGE_FLIP, &flip) == 0 && poll(&asked, 1, 0) == 1 && asked.revents == POLLIN);
    /* Another open file is not told. */
    int other = open("/dev/dri/card0", O_RDWR | O_NONBLOCK);
    FAILS(read(other, bytes, sizeof bytes), EAGAIN);
    struct event event;
    HOLDS(read(node, bytes, sizeof bytes) == sizeof event);
    memcpy(&event, bytes, sizeof event);
    HOLDS(event.kind == 2 && event.length == 32 && event.user == flip.user && event.crtc == 1 && event.frame == 2);
    FAILS(read(node, bytes, sizeof bytes), EAGAIN);

    /* As many events wait as 4096 bytes hold. Later requests for one are refused, and a read takes whole events. */
    flip.user = 0;
    while (flip.user < 999 && ioctl(node, PAGE_FLIP, &flip) == 0)
        flip.user++;
    HOLDS(errno == ENOMEM && flip.user == 128);
    HOLDS(read(node, bytes, sizeof event - 1) == 0);
    HOLDS(read(node, bytes, 1000) == 992);
    HOLDS(ioctl(node, PAGE_FLIP, &flip) == 0);
    for (int number = 31; number < 129; number++) {
        HOLDS(read(node, &event, sizeof event) == sizeof event);
        HOLDS(event.length == 32 && event.user == (uint64_t)number);
    }
    FAILS(read(node, bytes, sizeof event - 1), EAGAIN);
    return 0;
}
