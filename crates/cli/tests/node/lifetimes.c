/* How long buffers, handles, mappings and framebuffers last. argv[1]: which claim. */
#include "node.h"

#define BYTES (1 << 20)

static void buffers_end_with_the_last_descriptor(void) {
    int other = opened();
    for (int turn = 0; turn < 20; turn++) {
        int node = opened(), duplicate = dup(node), copy = fcntl(node, F_DUPFD_CLOEXEC, 50);
        memset(mapped(node, created(node, BYTES), BYTES), 1, BYTES);
        close(node);
        HOLDS(used(other) == BYTES && used(duplicate) == BYTES);
        /* Duplicates have the same handles. */
        HOLDS(place(copy, 1) == place(duplicate, 1));
        close(copy);
        HOLDS(used(other) == BYTES);
        switch (turn % 4) {
        case 0: close(duplicate); break;
        case 1: HOLDS(dup2(0, duplicate) == duplicate && close(duplicate) == 0); break;
        case 2: HOLDS(close_range(duplicate, duplicate, 0) == 0); break;
        /* Past the C library: noticed when a buffer is made. */
        default:
            syscall(SYS_close, duplicate);
            HOLDS(closed(other, created(other, 4096)) == 0);
        }
        HOLDS(used(other) == 0);
    }
}

static void a_child_keeps_an_open_file_and_closes_none_of_its_parent(void) {
    int other = opened(), node = opened();
    uint32_t *words = mapped(node, created(node, BYTES), BYTES);
    words[0] = 5;
    /* One that has its own memory, and one that shares it until it ends. */
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = turn ? vfork() : fork();
        if (child == 0) {
            close(node);
            close_range(3, ~0U, 0);
            _exit(0);
        }
        int status;
        HOLDS(waitpid(child, &status, 0) == child && status == 0);
        HOLDS(used(other) == BYTES && place(node, 1) && words[0] == 5);
    }
    HOLDS(submitted(node, 1) == 0 && closed(node, 1) == 0 && words[0] == 5 && used(other) == 0);
}

static void a_mapping_keeps_its_pages(void) {
    int node = opened();
    uint32_t handle = created(node, BYTES), *old = mapped(node, handle, BYTES);
    uint32_t *part = mmap(NULL, 65536, PROT_READ, MAP_SHARED, node, place(node, handle) + BYTES - 65536);
    HOLDS(part != MAP_FAILED);
    old[0] = 0x1234, old[BYTES / 4 - 65536 / 4] = 9;
    HOLDS(closed(node, handle) == 0 && old[0] == 0x1234);
    for (int turn = 0; turn < 100; turn++) {
        uint32_t next = created(node, BYTES), *words = mapped(node, next, BYTES);
        HOLDS(words[0] == 0 && old[0] == 0x1234 && part[0] == 9);
        words[0] = words[BYTES / 4 - 65536 / 4] = 77;
        HOLDS(old[0] == 0x1234 && part[0] == 9);
        old[0] = 0x1234;
        HOLDS(words[0] == 77 && munmap(words, BYTES) == 0 && closed(node, next) == 0);
    }
    close(node);
    HOLDS(old[0] == 0x1234 && part[0] == 9);
}

static void everything_is_closed_and_the_node_is_opened_again(void) {
    for (int turn = 0; turn < 3; turn++) {
        int node = opened();
        uint32_t *words = mapped(node, created(node, BYTES), BYTES);
        words[0] = 5;
        if (turn == 0)
            HOLDS(close_range(0, ~0U, 0) == 0);
        else
            for (int number = 0; number < sysconf(_SC_OPEN_MAX); number++)
                turn == 1 ? close(number) : (int)syscall(SYS_close, number);
        int file = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
        HOLDS(file == 0 && write(file, "data", 4) == 4 && dup2(file, 1) == 1 && dup2(file, node) == node);
        struct gem_create create = {.size = 4096};
        FAILS(ioctl(node, GEM_CREATE, &create), ENOTTY);
        int again = opened();
        HOLDS(created(again, BYTES) == 1 && used(again) == BYTES && words[0] == 5);
        HOLDS(mapped(again, 1, BYTES)[0] == 0 && closed(again, 1) == 0);
        struct stat status;
        HOLDS(fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 4);
        close(again);
    }
}

/* The last descriptor may be on its way through a socket. */
static void an_open_file_lasts_while_it_is_sent(void) {
    int other = opened(), node = opened(), ends[2], received;
    uint64_t at = place(node, created(node, BYTES));
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &node, sizeof node);
    HOLDS(sendmsg(ends[0], &message, 0) == 1 && close(node) == 0);
    HOLDS(used(other) == BYTES && created(other, 4096) == 1);
    HOLDS(recvmsg(ends[1], &message, 0) == 1);
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    HOLDS(place(received, 1) == at && closed(received, 1) == 0);
}

static void a_framebuffer_keeps_its_buffer(void) {
    int node = opened(), other = opened();
    uint32_t handle, id = framebuffer(node, &handle);
    mapped(node, handle, 4096)[0] = 0x00112233;
    HOLDS(closed(node, handle) == 0 && closed(node, handle) == -1 && errno == EINVAL);
    /* Its place is not that of another buffer. */
    memset(mapped(node, created(node, BYTES), BYTES), 0xff, BYTES);
    HOLDS(shown(node, id) == 0);
    /* Another open file cannot end it. */
    FAILS(ioctl(other, RMFB, &id), ENOENT);
    struct resources found = {0};
    HOLDS(ioctl(other, GETRESOURCES, &found) == 0 && found.counts[0] == 0);
    struct crtc crtc = {.id = 1};
    HOLDS(ioctl(other, GETCRTC, &crtc) == 0 && crtc.framebuffer == id);
    /* It ends with its open file. */
    close(node);
    crtc.id = 1;
    HOLDS(ioctl(other, GETCRTC, &crtc) == 0 && crtc.framebuffer == 0 && crtc.valid == 0);
    FAILS(shown(other, id), ENOENT);
}

static void a_handle_means_nothing_to_another_open_file(void) {
    int node = opened(), other = opened();
    uint32_t handle = created(node, BYTES);
    uint64_t at = place(node, handle);
    struct gem_mmap map = {.handle = handle};
    struct gem_tiling tiling = {.handle = handle};
    struct gem_busy busy = {.handle = handle};
    FAILS(closed(other, handle), EINVAL);
    FAILS(ioctl(other, GEM_MMAP, &map), ENOENT);
    FAILS(ioctl(other, SET_TILING, &tiling), ENOENT);
    FAILS(ioctl(other, GEM_BUSY, &busy), ENOENT);
    HOLDS(submitted(other, handle) == -1 && submitted(node, handle) == 0);
    struct framebuffer made = {0, 16, 16, 256, 32, 24, handle};
    FAILS(ioctl(other, ADDFB, &made), ENOENT);
    FAILS(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, other, at), EACCES);
    /* Nor is there anything to map outside of it, or to keep for oneself. */
    FAILS(mmap(NULL, BYTES + 65536, PROT_READ, MAP_SHARED, node, at), EINVAL);
    FAILS(mmap(NULL, 4096, PROT_READ, MAP_SHARED, node, 0), EINVAL);
    FAILS(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, node, at), EINVAL);
    HOLDS(created(other, 4096) == handle && place(other, handle) != at);
    HOLDS(closed(other, handle) == 0 && place(node, handle) == at);
}

static void nouveau_has_the_same_lifetimes(void) {
    int node = opened(), other = opened();
    struct nouveau_new new = {.buffer = {0, 2, BYTES}};
    HOLDS(ioctl(node, NOUVEAU_NEW, &new) == 0);
    uint32_t handle = new.buffer[0];
    uint64_t at = new.buffer[6] | (uint64_t)new.buffer[7] << 32;
    uint32_t *old = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, node, at);
    HOLDS(old != MAP_FAILED);
    old[0] = 0x1234;
    struct nouveau_buffer info = {.handle = handle};
    FAILS(ioctl(other, NOUVEAU_INFO, &info), ENOENT);
    struct push_buffer named = {.handle = handle};
    uint64_t segment[3] = {0, 0, 0};
    struct pushbuf push = {.buffer_count = 1, .buffers = (uint64_t)&named, .segment_count = 1, .segments = (uint64_t)segment};
    FAILS(ioctl(other, NOUVEAU_PUSHBUF, &push), ENOENT);
    FAILS(closed(other, handle), EINVAL);
    FAILS(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, other, at), EACCES);
    HOLDS(ioctl(node, NOUVEAU_PUSHBUF, &push) == 0 && closed(node, handle) == 0);
    HOLDS(ioctl(other, NOUVEAU_NEW, &new) == 0 && old[0] == 0x1234);
    /* Lists that cannot be read. */
    push.segments = 0x1000;
    FAILS(ioctl(other, NOUVEAU_PUSHBUF, &push), EFAULT);
    push.segments = (uint64_t)segment, push.buffers = 0x1000;
    FAILS(ioctl(other, NOUVEAU_PUSHBUF, &push), EFAULT);
    push.buffers = (uint64_t)&named, push.relocation_count = 1, push.relocations = 0x1000;
    FAILS(ioctl(other, NOUVEAU_PUSHBUF, &push), EFAULT);
    FAILS(ioctl(other, NOUVEAU_NEW, (void *)0x1000), EFAULT);
}

#define CLAIM(name) if (!strcmp(arguments[1], #name)) return name(), 0
int main(int count, char **arguments) {
    HOLDS(count == 2);
    CLAIM(buffers_end_with_the_last_descriptor);
    CLAIM(a_child_keeps_an_open_file_and_closes_none_of_its_parent);
    CLAIM(a_mapping_keeps_its_pages);
    CLAIM(everything_is_closed_and_the_node_is_opened_again);
    CLAIM(an_open_file_lasts_while_it_is_sent);
    CLAIM(a_framebuffer_keeps_its_buffer);
    CLAIM(a_handle_means_nothing_to_another_open_file);
    CLAIM(nouveau_has_the_same_lifetimes);
    return 2;
}
