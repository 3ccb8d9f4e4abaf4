/* A program that closes descriptors which it does not know, in a folder of its own. argv[1]: how. */
#include "node.h"

#define BYTES (2 << 20)

/* A file of the program, full of 'A'. */
static int data(const char *name) {
    static char bytes[BYTES];
    memset(bytes, 'A', BYTES);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    HOLDS(file >= 0 && write(file, bytes, BYTES) == BYTES);
    return file;
}

static void unchanged(int file) {
    static char bytes[BYTES];
    HOLDS(pread(file, bytes, BYTES, 0) == BYTES && lseek(file, 0, SEEK_END) == BYTES);
    for (int at = 0; at < BYTES; at++)
        HOLDS(bytes[at] == 'A');
}

int main(int count, char **arguments) {
    HOLDS(count == 2);
    const char *how = arguments[1];
    int node = opened(), limit = sysconf(_SC_OPEN_MAX), files[8], last = 0;
    uint32_t handle = created(node, 1 << 20), kept = created(node, 1 << 20);
    uint32_t *words = mapped(node, kept, 1 << 20);
    words[0] = 7;
    if (!strcmp(how, "close")) {
        for (int number = 3; number < limit; number++)
            if (number != node)
                close(number);
    } else if (!strcmp(how, "close_range")) {
        HOLDS(close_range(3, node - 1, 0) == 0 || node == 3);
        HOLDS(close_range(node + 1, ~0U, 0) == 0);
    } else if (!strcmp(how, "closefrom")) {
        closefrom(node + 1);
    } else if (!strcmp(how, "dup2")) {
        /* All that is open is the program's own file. */
        int file = data("over");
        for (int number = 3; number < limit; number++)
            if (number != node && number != file && fcntl(number, F_GETFD) >= 0)
                HOLDS(dup2(file, number) == number);
    } else {
        /* Past the C library. */
        HOLDS(!strcmp(how, "syscall"));
        for (int number = 3; number < limit; number++)
            if (number != node)
                syscall(SYS_close, number);
    }
    /* Every number up to where any descriptor was. */
    for (; last < 8; last++)
        files[last] = data("data");
    for (int number = 0; number < limit; number++)
        if (fcntl(number, F_GETFD) < 0)
            dup2(files[0], number);

    HOLDS(closed(node, handle) == 0 && words[0] == 7);
    HOLDS(submitted(node, kept) == 0 && used(node) == 1 << 20);
    uint32_t next = created(node, 1 << 20), fb_handle;
    HOLDS(mapped(node, next, 1 << 20)[0] == 0);
    HOLDS(shown(node, framebuffer(node, &fb_handle)) == 0);
    for (int number = 0; number < last; number++)
        unchanged(files[number]);
    for (int number = node + 100; number < limit; number++)
        close(number);

    int again = opened();
    struct stat one, other;
    HOLDS(fstat(again, &one) == 0 && fstat(files[0], &other) == 0);
    HOLDS(S_ISCHR(one.st_mode) && one.st_rdev == makedev(226, 128));
    HOLDS(one.st_dev != other.st_dev || one.st_ino != other.st_ino);
    HOLDS(created(again, 4096) == 1 && closed(again, 1) == 0);
    close(again);
    close(node);
    for (int number = 0; number < last; number++)
        unchanged(files[number]);
    return 0;
}
