/* Open files of input devices: events are read whole, signals arrive, and other processes have the files too. argv[1]: which
 * claim. The program is its own window. */
#include "node.h"
#include <linux/input.h>
#include <signal.h>
#include <sys/un.h>

#define EVENT sizeof(struct input_event)

static const char *program;

/* Opens the keyboard of a new window. */
static int keyboard_of(int *connection, int flags) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "./keyboard"};
    int window = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(address.sun_path);
    HOLDS(bind(window, (struct sockaddr *)&address, sizeof address) == 0 && listen(window, 4) == 0);
    setenv("RECONVERGE_DRM_WINDOW", ".", 1);
    int keyboard = open("/dev/input/event0", flags);
    *connection = accept4(window, NULL, NULL, SOCK_CLOEXEC);
    HOLDS(keyboard >= 0 && *connection >= 0 && close(window) == 0);
    return keyboard;
}

/* drivers/input/evdev.c, evdev_read: fewer bytes than an event has are EINVAL, and only whole events are read. */
static void events_are_read_whole(void) {
    struct input_event sent[5], found[5];
    int connection, keyboard = keyboard_of(&connection, O_RDWR);
    for (int number = 0; number < 5; number++)
        sent[number] = (struct input_event){.type = EV_KEY, .code = KEY_Q + number, .value = 1};
    HOLDS(EVENT == 24 && write(connection, sent, sizeof sent) == sizeof sent);
    FAILS(read(keyboard, found, 10), EINVAL);
    HOLDS(read(keyboard, found, 0) == 0);
    HOLDS(read(keyboard, found, 59) == 2 * EVENT && memcmp(found, sent, 2 * EVENT) == 0);
    struct iovec parts[2] = {{found, EVENT}, {found + 1, EVENT + 9}};
    HOLDS(readv(keyboard, parts, 2) == 2 * EVENT && memcmp(found, sent + 2, 2 * EVENT) == 0);
    parts[0].iov_len = 7;
    FAILS(readv(keyboard, parts, 1), EINVAL);
    const struct iovec *volatile nowhere = (void *)16;
    FAILS(readv(keyboard, nowhere, 1), EFAULT);
    HOLDS(read(keyboard, found, sizeof found) == EVENT && memcmp(found, sent + 4, EVENT) == 0);
    /* The stream passes on a part of an event before the rest. */
    HOLDS(write(connection, sent, EVENT + 10) == EVENT + 10);
    pid_t child = fork();
    if (child == 0)
        _exit(write(connection, (char *)sent + EVENT + 10, EVENT - 10) != EVENT - 10);
    HOLDS(read(keyboard, found, sizeof found) == 2 * EVENT && memcmp(found, sent, 2 * EVENT) == 0);
    int status;
    HOLDS(waitpid(child, &status, 0) == child && status == 0);
    /* The window is closed in the middle of one. */
    HOLDS(write(connection, sent, EVENT + 10) == EVENT + 10 && close(connection) == 0);
    HOLDS(read(keyboard, found, sizeof found) == EVENT);
    FAILS(read(keyboard, found, sizeof found), ENODEV);
}

static volatile sig_atomic_t arrived;
static void note(int number) { arrived = number; }

/* fcntl(2), O_ASYNC: without F_SETSIG, the signal is SIGIO. */
static void a_file_with_o_async_sends_sigio(void) {
    struct input_event event = {.type = EV_SYN};
    int connection, keyboard = keyboard_of(&connection, O_RDWR | O_NONBLOCK);
    sigset_t waits, before;
    signal(SIGIO, note);
    sigemptyset(&waits);
    sigaddset(&waits, SIGIO);
    sigprocmask(SIG_BLOCK, &waits, &before);
    HOLDS(fcntl(keyboard, F_GETSIG) == 0 && fcntl(keyboard, F_SETOWN, getpid()) == 0);
    HOLDS(fcntl(keyboard, F_SETFL, O_NONBLOCK | O_ASYNC) == 0);
    HOLDS(write(connection, &event, EVENT) == EVENT);
    while (arrived == 0)
        sigsuspend(&before);
    HOLDS(arrived == SIGIO && read(keyboard, &event, EVENT) == EVENT);

    uint32_t handle;
    int card = open("/dev/dri/card0", O_RDWR);
    HOLDS(fcntl(card, F_GETSIG) == 0 && fcntl(card, F_SETOWN, getpid()) == 0 && fcntl(card, F_SETFL, O_ASYNC) == 0);
    struct flip flip = {.crtc = 1, .framebuffer = framebuffer(card, &handle), .flags = 1};
    HOLDS(shown(card, flip.framebuffer) == 0);
    arrived = 0;
    HOLDS(ioctl(card, PAGE_FLIP, &flip) == 0);
    while (arrived == 0)
        sigsuspend(&before);
    HOLDS(arrived == SIGIO);
}

/* drivers/input/evdev.c, evdev_write; vfs_write for the way in which the file was opened. */
static void events_are_written_whole(void) {
    char bytes[60] = {0};
    struct iovec parts[2] = {{bytes, EVENT}, {bytes, EVENT + 3}};
    int keyboard = open("/dev/input/event0", O_RDWR | O_NONBLOCK);
    const void *volatile nowhere = NULL;
    FAILS(write(keyboard, nowhere, EVENT), EFAULT);
    FAILS(write(keyboard, bytes, 3), EINVAL);
    HOLDS(write(keyboard, bytes, 59) == 2 * EVENT && writev(keyboard, parts, 2) == 2 * EVENT);
    int one_way = open("/dev/input/event0", O_RDONLY | O_NONBLOCK), other_way = open("/dev/input/event0", O_WRONLY);
    FAILS(write(one_way, bytes, EVENT), EBADF);
    FAILS(read(other_way, bytes, EVENT), EBADF);
    HOLDS(ioctl(keyboard, EVIOCREVOKE, 0) == 0);
    FAILS(write(keyboard, bytes, EVENT), ENODEV);
    FAILS(ioctl(keyboard, EVIOCGNAME(sizeof bytes), bytes), ENODEV);
}

/* The program that is started has the descriptor argv[2], and calls nothing else before. */
static void a_file_is_one_after_exec(int keyboard) {
    struct input_event event = {.type = EV_LED};
    struct iovec part = {&event, EVENT};
    if (keyboard >= 0) {
        FAILS(read(keyboard, &event, EVENT), ENODEV);
        FAILS(write(keyboard, &event, EVENT), ENODEV);
        FAILS(writev(keyboard, &part, 1), ENODEV);
        exit(0);
    }
    int connection;
    keyboard = keyboard_of(&connection, O_RDWR);
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", keyboard);
        execl(program, program, "a_file_is_one_after_exec", number, NULL);
        _exit(1);
    }
    int status;
    HOLDS(close(connection) == 0 && waitpid(child, &status, 0) == child && status == 0);
}

#define CLAIM(name) if (strcmp(argv[1], #name) == 0) name()

int main(int argc, char **argv) {
    program = argv[0];
    CLAIM(events_are_read_whole);
    else CLAIM(a_file_with_o_async_sends_sigio);
    else CLAIM(events_are_written_whole);
    else if (strcmp(argv[1], "a_file_is_one_after_exec") == 0) a_file_is_one_after_exec(argc > 2 ? atoi(argv[2]) : -1);
    else HOLDS(!"a claim");
    return 0;
}
