/* Buffers, open files and paths that several processes have. argv[1]: which claim. The program starts itself again as a
 * client, which is another process with its own chip; argv[2] is then the socket to the first one. */
#include "node.h"
#include <dirent.h>
#include <signal.h>
#include <time.h>

struct prime { uint32_t handle, flags; int32_t descriptor; };
#define TO_FILE REQUEST(0x2d, struct prime)
#define TO_HANDLE REQUEST(0x2e, struct prime)
#define GET_TILING REQUEST(0x69, struct gem_tiling)
#define VERSION REQUEST(0x00, struct version)

#define BYTES (1 << 20)
#define CLIENTS 100

static const char *program;

static void sent(int socket, int descriptor) {
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    HOLDS(sendmsg(socket, &message, 0) == 1);
}

static int received(int socket) {
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    HOLDS(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1);
    int descriptor;
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

static int file_of(int node, uint32_t handle) {
    struct prime prime = {handle, O_CLOEXEC | O_RDWR, -1};
    HOLDS(ioctl(node, TO_FILE, &prime) == 0 && prime.descriptor >= 0);
    return prime.descriptor;
}

static uint32_t handle_of(int node, int descriptor) {
    struct prime prime = {.descriptor = descriptor};
    HOLDS(ioctl(node, TO_HANDLE, &prime) == 0 && prime.handle != 0);
    return prime.handle;
}

/* Starts this program as a client. Returns the socket to it. */
static int client(const char *claim, pid_t *process) {
    int ends[2];
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    *process = fork();
    HOLDS(*process >= 0);
    if (*process == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", ends[1]);
        close(ends[0]);
        execl(program, program, claim, number, NULL);
        _exit(1);
    }
    close(ends[1]);
    return ends[0];
}

static void ended_well(pid_t process) {
    int status;
    HOLDS(waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void two_processes_share_a_tiled_buffer(int socket) {
    if (socket >= 0) {
        int node = opened();
        uint32_t handle = handle_of(node, received(socket)), *words = mapped(node, handle, BYTES);
        struct gem_tiling tiling = {.handle = handle};
        HOLDS(ioctl(node, GET_TILING, &tiling) == 0 && tiling.flags == 3 && tiling.pitch == 512);
        for (uint32_t word = 0; word < BYTES / 4; word++) {
            HOLDS(words[word] == word * 2654435761u);
            words[word] = ~word;
        }
        HOLDS(submitted(node, handle) == 0 && send(socket, "", 1, 0) == 1);
        return;
    }
    int node = opened();
    uint32_t handle = created(node, BYTES), *words = mapped(node, handle, BYTES);
    struct gem_tiling tiling = {handle, 3, 512};
    HOLDS(ioctl(node, SET_TILING, &tiling) == 0);
    for (uint32_t word = 0; word < BYTES / 4; word++)
        words[word] = word * 2654435761u;
    int file = file_of(node, handle);
    HOLDS(lseek(file, 0, SEEK_END) == BYTES);
    pid_t process;
    char byte;
    int other = client("two_processes_share_a_tiled_buffer", &process);
    sent(other, file);
    HOLDS(recv(other, &byte, 1, 0) == 1);
    for (uint32_t word = 0; word < BYTES / 4; word++)
        HOLDS(words[word] == ~word);
    ended_well(process);
    HOLDS(words[5] == ~5u && submitted(node, handle) == 0);
}

/* As DRI3 does it: the server opens the node, and the client uses the descriptor. */
static void an_open_file_is_used_by_another_process(int socket) {
    if (socket >= 0) {
        int node = received(socket);
        struct version version = {0};
        HOLDS(ioctl(node, VERSION, &version) == 0 && version.numbers[0] == 2);
        struct stat status;
        HOLDS(fstat(node, &status) == 0 && status.st_rdev == makedev(226, 128));
        uint32_t handle = created(node, BYTES);
        mapped(node, handle, BYTES)[0] = 77;
        sent(socket, file_of(node, handle));
        return;
    }
    pid_t process;
    int node = opened(), other = client("an_open_file_is_used_by_another_process", &process), mine = opened();
    sent(other, mine);
    close(mine);
    HOLDS(mapped(node, handle_of(node, received(other)), BYTES)[0] == 77);
    ended_well(process);
}

/* The process that opened the file is dead before the receiver uses it. */
static void an_open_file_outlives_its_opener(int socket) {
    char byte;
    if (socket >= 0) {
        int node = received(socket);
        /* The opener is dead. */
        HOLDS(recv(socket, &byte, 1, 0) == 0);
        struct version version = {0};
        struct pollfd asked = {node, POLLIN, 0};
        HOLDS(ioctl(node, VERSION, &version) == 0 && poll(&asked, 1, 0) == 0);
        FAILS(read(node, &byte, 1), EAGAIN);
        /* The last close is noticed still. */
        int other = opened(), duplicate = dup(node);
        created(node, BYTES);
        HOLDS(close(node) == 0 && used(other) == BYTES && close(duplicate) == 0 && used(other) == 0);
        return;
    }
    pid_t process;
    int other = client("an_open_file_outlives_its_opener", &process), status;
    pid_t opener = fork();
    if (opener == 0) {
        sent(other, open("/dev/dri/renderD128", O_RDWR | O_NONBLOCK | O_CLOEXEC));
        _exit(0);
    }
    HOLDS(waitpid(opener, &status, 0) == opener && status == 0 && close(other) == 0);
    ended_well(process);
}

/* Bytes of the files of buffers that this process has. */
static long shared_bytes(void) {
    char line[256];
    long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    HOLDS(file != NULL);
    while (fgets(line, sizeof line, file))
        sscanf(line, "RssShmem: %ld", &kilobytes);
    fclose(file);
    return kilobytes * 1024;
}

/* A client shares buffers with the server until it is killed. */
static void killed_clients_leave_nothing(int socket) {
    if (socket >= 0) {
        int node = opened();
        for (;;) {
            uint32_t handle = created(node, BYTES);
            memset(mapped(node, handle, BYTES), 1, BYTES);
            sent(socket, file_of(node, handle));
            submitted(node, handle);
        }
    }
    int node = opened();
    uint32_t own = created(node, BYTES), *words = mapped(node, own, BYTES);
    words[0] = 5;
    srand(18);
    long before = shared_bytes();
    for (int number = 0; number < CLIENTS; number++) {
        pid_t process;
        int other = client("killed_clients_leave_nothing", &process), count = 1 + rand() % 4;
        uint32_t last = 0;
        for (int buffer = 0; buffer < count; buffer++) {
            int file = received(other);
            uint32_t handle = handle_of(node, file);
            uint32_t *theirs = mapped(node, handle, BYTES);
            HOLDS(theirs[BYTES / 4 - 1] == 0x01010101 && theirs[0] == 0x01010101 && munmap(theirs, BYTES) == 0);
            close(file);
            /* Some buffers last until their client is killed. */
            if (buffer + 1 < count)
                HOLDS(closed(node, handle) == 0);
            else
                last = handle;
        }
        struct timespec pause = {0, rand() % 3000000};
        nanosleep(&pause, NULL);
        HOLDS(kill(process, SIGKILL) == 0);
        int status;
        HOLDS(waitpid(process, &status, 0) == process && WIFSIGNALED(status));
        close(other);
        HOLDS(closed(node, last) == 0 && words[0] == 5 && submitted(node, own) == 0);
    }
    HOLDS(used(node) == BYTES && shared_bytes() <= before + BYTES);
}

/* What a program sees that lists devices. */
static void the_node_has_paths(int socket) {
    (void)socket;
    struct stat card, render, folder;
    HOLDS(stat("/dev/dri/card0", &card) == 0 && S_ISCHR(card.st_mode) && card.st_rdev == makedev(226, 0));
    struct stat opened_card;
    int file = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
    HOLDS(fstat(file, &opened_card) == 0 && opened_card.st_rdev == card.st_rdev && opened_card.st_ino == card.st_ino);
    HOLDS(close(file) == 0);
    HOLDS(lstat("/dev/dri/renderD128", &render) == 0 && render.st_rdev == makedev(226, 128));
    HOLDS(stat("/dev/dri", &folder) == 0 && S_ISDIR(folder.st_mode));
    HOLDS(access("/dev/dri/card0", R_OK | W_OK) == 0);
    FAILS(access("/dev/dri/card0", X_OK), EACCES);
    FAILS(stat("/dev/dri/card9", &card), ENOENT);
    DIR *list = opendir("/dev/dri");
    HOLDS(list != NULL);
    for (int turn = 0; turn < 2; turn++, rewinddir(list)) {
        char names[64] = "";
        for (struct dirent *entry; (entry = readdir(list)) != NULL;)
            strcat(strcat(names, entry->d_name), " ");
        HOLDS(strcmp(names, ". .. card0 renderD128 ") == 0);
    }
    HOLDS(closedir(list) == 0);
}

#define CLAIM(name) if (strcmp(argv[1], #name) == 0) name(argc > 2 ? atoi(argv[2]) : -1)

int main(int argc, char **argv) {
    program = argv[0];
    CLAIM(two_processes_share_a_tiled_buffer);
    else CLAIM(an_open_file_is_used_by_another_process);
    else CLAIM(an_open_file_outlives_its_opener);
    else CLAIM(killed_clients_leave_nothing);
    else CLAIM(the_node_has_paths);
    else HOLDS(!"a claim");
    return 0;
}
