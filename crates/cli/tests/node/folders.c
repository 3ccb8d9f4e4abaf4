/* The folders of the devices, and functions that take paths. argv[1]: which claim. */
#include "node.h"
#include <dirent.h>
#include <limits.h>
#include <linux/input.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* A list is a real one of the C library: POSIX, dirfd, telldir, seekdir and readdir_r. */
static void a_folder_is_listed_by_every_function(void) {
    int other = open("/proc/self/exe", O_RDONLY);
    HOLDS(lseek(other, 50, SEEK_SET) == 50);
    DIR *list = opendir("/dev/input"), *graphics = opendir("/dev/dri");
    struct stat status, at, whole;
    HOLDS(fstat(dirfd(list), &status) == 0 && stat("/dev/input", &whole) == 0);
    HOLDS(S_ISDIR(status.st_mode) && status.st_ino == whole.st_ino && status.st_nlink == 1);
    HOLDS(telldir(list) == 0 && strcmp(readdir(list)->d_name, ".") == 0 && readdir(list) != NULL);
    long place = telldir(list);
    struct dirent entry, *result, *found = readdir(list);
    HOLDS(strcmp(found->d_name, "event0") == 0 && found->d_type == DT_CHR);
    HOLDS(readdir_r(list, &entry, &result) == 0 && result == &entry && strcmp(entry.d_name, "event1") == 0);
    HOLDS(readdir_r(list, &entry, &result) == 0 && result == NULL && readdir(list) == NULL);
    seekdir(list, place);
    HOLDS(strcmp(readdir(list)->d_name, "event0") == 0 && strcmp(found->d_name, "event0") == 0);
    rewinddir(list);
    HOLDS(telldir(list) == 0 && lseek(other, 0, SEEK_CUR) == 50);
    /* Names relative to the descriptor. */
    HOLDS(fstatat(dirfd(list), "event1", &at, AT_SYMLINK_NOFOLLOW) == 0 && at.st_rdev == makedev(13, 65));
    struct statx extended;
    HOLDS(statx(dirfd(graphics), "card0", 0, STATX_BASIC_STATS, &extended) == 0 && extended.stx_rdev_major == 226);
    HOLDS(faccessat(dirfd(graphics), "renderD128", R_OK, 0) == 0);
    FAILS(fstatat(dirfd(list), "card0", &at, 0), ENOENT);
    int version, file = openat(dirfd(list), "event0", O_RDWR);
    HOLDS(file >= 0 && ioctl(file, EVIOCGVERSION, &version) == 0);
    HOLDS(closedir(list) == 0 && closedir(graphics) == 0);
    /* An open folder, and a list made of it. */
    int folder = open("/dev/dri", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    HOLDS(folder >= 0 && fcntl(folder, F_GETFD) == FD_CLOEXEC && (list = fdopendir(dup(folder))) != NULL);
    for (int number = 0; number < 3; number++)
        found = readdir(list);
    HOLDS(strcmp(found->d_name, "card0") == 0 && closedir(list) == 0);
    FAILS(open("/dev/dri", O_RDWR), EISDIR);
    FAILS(open("/dev/dri/card0", O_RDWR | O_DIRECTORY), ENOTDIR);
    FAILS(open("/dev/dri/card0", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
}

/* The lines that a command prints, without errors. */
static int lines(const char *command) {
    int count = 0;
    char line[512];
    FILE *output = popen(command, "r");
    while (fgets(line, sizeof line, output))
        count++;
    HOLDS(pclose(output) == 0);
    return count;
}

static void programs_list_the_folders_and_nothing_is_left(void) {
    HOLDS(lines("ls -l /dev/dri 2>&1") == 3);
    HOLDS(lines("ls -lR /dev/input /dev/dri 2>&1 | grep ^ls: || true") == 0);
    HOLDS(lines("ls -lR /dev/input | grep -c '^crw.* 13, *6[45] .*event[01]$' | grep -x 2") == 1);
    HOLDS(lines("find /dev/dri | sort | xargs echo | grep -x '/dev/dri /dev/dri/card0 /dev/dri/renderD128'") == 1);
    HOLDS(lines("find /dev/input -type c") == 2);
    HOLDS(lines("ls -d /dev/shm/reconverge-* /tmp/reconverge-?????? 2>&1 | grep -v 'No such file' || true") == 0);
}

int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

static void paths_are_resolved_opened_and_described(void) {
    char room[PATH_MAX], *made;
    HOLDS(strcmp(realpath("/dev/dri/card0", room), "/dev/dri/card0") == 0);
    HOLDS(strcmp(made = realpath("/dev/input/", NULL), "/dev/input") == 0);
    free(made);
    int file = __openat_2(AT_FDCWD, "/dev/dri/card0", O_RDWR), other = __openat64_2(AT_FDCWD, "/dev/input/event0", O_RDWR);
    struct stat status;
    struct statx extended;
    HOLDS(file >= 0 && other >= 0);
    HOLDS(fstatat(file, "", &status, AT_EMPTY_PATH) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(226, 0));
    HOLDS(statx(other, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended) == 0 && S_ISCHR(extended.stx_mode));
    HOLDS(fstatat(0, "", &status, AT_EMPTY_PATH) == 0 && status.st_rdev == makedev(1, 3));
    FILE *stream = fopen("/dev/input/event1", "re");
    HOLDS(stream != NULL && fstat(fileno(stream), &status) == 0 && status.st_rdev == makedev(13, 65));
    HOLDS(fcntl(fileno(stream), F_GETFD) == FD_CLOEXEC && fclose(stream) == 0);
    /* Addresses that cannot be written. */
    FAILS(stat("/dev/dri/card0", (void *)16), EFAULT);
    FAILS(lstat("/dev/dri", (void *)16), EFAULT);
    FAILS(fstatat(file, "", (void *)16, AT_EMPTY_PATH), EFAULT);
    FAILS(statx(AT_FDCWD, "/dev/input/event0", 0, STATX_BASIC_STATS, (void *)16), EFAULT);
}

#define CLAIM(name) if (strcmp(argv[1], #name) == 0) name()

int main(int argc, char **argv) {
    HOLDS(argc == 2);
    CLAIM(a_folder_is_listed_by_every_function);
    else CLAIM(programs_list_the_folders_and_nothing_is_left);
    else CLAIM(paths_are_resolved_opened_and_described);
    else HOLDS(!"a claim");
    return 0;
}
