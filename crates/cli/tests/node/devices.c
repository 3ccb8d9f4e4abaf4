/* The emulated devices for programs that look with libudev, and open the input devices. Libudev's functions are found among
 * all libraries, as SDL does it. argv[1]: which claim. */
#define _GNU_SOURCE
#include "node.h"
#include <dirent.h>
#include <dlfcn.h>
#include <linux/input.h>
#include <linux/vt.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FUNCTION(answer, name, ...) answer (*name)(__VA_ARGS__) = (answer (*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, #name); HOLDS(name != NULL)

static void devices_are_found_with_libudev(void) {
    FUNCTION(void *, udev_new, void);
    FUNCTION(void *, udev_unref, void *);
    FUNCTION(void *, udev_enumerate_new, void *);
    FUNCTION(void *, udev_enumerate_unref, void *);
    FUNCTION(int, udev_enumerate_add_match_subsystem, void *, const char *);
    FUNCTION(int, udev_enumerate_add_match_sysname, void *, const char *);
    FUNCTION(int, udev_enumerate_scan_devices, void *);
    FUNCTION(void *, udev_enumerate_get_list_entry, void *);
    FUNCTION(void *, udev_list_entry_get_next, void *);
    FUNCTION(const char *, udev_list_entry_get_name, void *);
    FUNCTION(void *, udev_device_new_from_syspath, void *, const char *);
    FUNCTION(void *, udev_device_new_from_devnum, void *, char, dev_t);
    FUNCTION(void *, udev_device_ref, void *);
    FUNCTION(void *, udev_device_unref, void *);
    FUNCTION(void *, udev_device_get_parent_with_subsystem_devtype, void *, const char *, const char *);
    FUNCTION(const char *, udev_device_get_devnode, void *);
    FUNCTION(dev_t, udev_device_get_devnum, void *);
    FUNCTION(const char *, udev_device_get_syspath, void *);
    FUNCTION(const char *, udev_device_get_sysattr_value, void *, const char *);
    FUNCTION(const char *, udev_device_get_property_value, void *, const char *);
    FUNCTION(void *, udev_monitor_new_from_netlink, void *, const char *);
    FUNCTION(int, udev_monitor_get_fd, void *);
    FUNCTION(void *, udev_monitor_receive_device, void *);
    FUNCTION(void *, udev_monitor_unref, void *);

    void *udev = udev_new(), *search = udev_enumerate_new(udev);
    HOLDS(udev_enumerate_add_match_subsystem(search, "drm") == 0);
    HOLDS(udev_enumerate_add_match_sysname(search, "card[0-9]*") == 0 && udev_enumerate_scan_devices(search) == 0);
    void *list = udev_enumerate_get_list_entry(search);
    HOLDS(list != NULL && udev_list_entry_get_next(list) == NULL);
    void *card = udev_device_new_from_syspath(udev, udev_list_entry_get_name(list));
    HOLDS(udev_enumerate_unref(search) == NULL);
    struct stat status;
    HOLDS(card != NULL && stat(udev_device_get_devnode(card), &status) == 0);
    HOLDS(status.st_rdev == udev_device_get_devnum(card) && status.st_rdev == makedev(226, 0));
    void *board = udev_device_ref(udev_device_get_parent_with_subsystem_devtype(card, "pci", NULL));
    HOLDS(udev_device_unref(card) == NULL);
    HOLDS(strcmp(udev_device_get_sysattr_value(board, "boot_vga"), "1") == 0);
    HOLDS(strcmp(udev_device_get_sysattr_value(board, "vendor"), "0x1002") == 0);
    HOLDS(udev_device_get_sysattr_value(board, "nothing") == NULL && errno == ENOENT);
    HOLDS(udev_device_unref(board) == NULL);

    /* The open file of an input device is the device that udev shows, as libinput checks. */
    int file = open("/dev/input/event1", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    HOLDS(file >= 0 && fstat(file, &status) == 0 && S_ISCHR(status.st_mode));
    void *pointer = udev_device_new_from_devnum(udev, 'c', status.st_rdev);
    HOLDS(pointer != NULL && strcmp(udev_device_get_devnode(pointer), "/dev/input/event1") == 0);
    HOLDS(strstr(udev_device_get_syspath(pointer), "/input1/event1") != NULL);
    HOLDS(strcmp(udev_device_get_property_value(pointer, "ID_INPUT_MOUSE"), "1") == 0);
    HOLDS(udev_device_new_from_devnum(udev, 'b', status.st_rdev) == NULL && errno == ENODEV);
    udev_device_unref(pointer);
    close(file);

    void *monitor = udev_monitor_new_from_netlink(udev, "udev");
    struct pollfd wait = {udev_monitor_get_fd(monitor), POLLIN, 0};
    HOLDS(poll(&wait, 1, 0) == 0 && udev_monitor_receive_device(monitor) == NULL);
    udev_monitor_unref(monitor);
    udev_unref(udev);
}

/* As seen with systemd's libudev 252. */
static void searches_and_null_are_as_with_libudev(void) {
    FUNCTION(void *, udev_new, void);
    FUNCTION(void *, udev_enumerate_new, void *);
    FUNCTION(int, udev_enumerate_add_match_subsystem, void *, const char *);
    FUNCTION(int, udev_enumerate_add_match_parent, void *, void *);
    FUNCTION(int, udev_enumerate_add_syspath, void *, const char *);
    FUNCTION(int, udev_enumerate_scan_devices, void *);
    FUNCTION(int, udev_enumerate_scan_subsystems, void *);
    FUNCTION(void *, udev_enumerate_get_list_entry, void *);
    FUNCTION(void *, udev_list_entry_get_next, void *);
    FUNCTION(const char *, udev_list_entry_get_name, void *);
    FUNCTION(void *, udev_device_new_from_subsystem_sysname, void *, const char *, const char *);
    FUNCTION(void *, udev_monitor_new_from_netlink, void *, const char *);
    FUNCTION(int, udev_monitor_enable_receiving, void *);
    FUNCTION(int, udev_monitor_filter_add_match_subsystem_devtype, void *, const char *, const char *);
    FUNCTION(int, udev_monitor_filter_add_match_tag, void *, const char *);

    void *udev = udev_new(), *search = udev_enumerate_new(udev);
    HOLDS(udev_enumerate_add_syspath(search, NULL) == 0 && udev_enumerate_get_list_entry(search) == NULL);
    /* A second parent replaces the first. */
    void *board = udev_device_new_from_subsystem_sysname(udev, "pci", "0000:01:00.0");
    void *input = udev_device_new_from_subsystem_sysname(udev, "input", "event0");
    HOLDS(udev_enumerate_add_match_parent(search, board) == 0 && udev_enumerate_add_match_parent(search, input) == 0);
    HOLDS(udev_enumerate_scan_devices(search) == 0);
    void *list = udev_enumerate_get_list_entry(search);
    HOLDS(strstr(udev_list_entry_get_name(list), "/event0") != NULL && udev_list_entry_get_next(list) == NULL);
    search = udev_enumerate_new(udev);
    HOLDS(udev_enumerate_scan_subsystems(search) == 0 && udev_enumerate_get_list_entry(search) != NULL);
    HOLDS(udev_enumerate_add_match_subsystem(search, "nothing") == 0);
    HOLDS(udev_enumerate_scan_subsystems(search) == 0 && udev_enumerate_get_list_entry(search) == NULL);
    HOLDS(udev_monitor_new_from_netlink(udev, "bogus") == NULL && errno == EINVAL);
    void *monitor = udev_monitor_new_from_netlink(udev, "kernel");
    HOLDS(monitor != NULL && udev_monitor_enable_receiving(monitor) == 0);
    HOLDS(udev_monitor_enable_receiving(NULL) == -EINVAL);
    HOLDS(udev_monitor_filter_add_match_subsystem_devtype(monitor, "drm", NULL) == 0);
    HOLDS(udev_monitor_filter_add_match_subsystem_devtype(monitor, NULL, NULL) == -EINVAL);
    HOLDS(udev_monitor_filter_add_match_subsystem_devtype(NULL, "drm", NULL) == -EINVAL);
    HOLDS(udev_monitor_filter_add_match_tag(monitor, NULL) == -EINVAL);
}

static int is_event(const struct dirent *entry) { return strncmp(entry->d_name, "event", 5) == 0; }

static void input_devices_answer_as_the_kernel_does(void) {
    struct dirent **list;
    HOLDS(scandir("/dev/input", &list, is_event, alphasort) == 2);
    HOLDS(strcmp(list[0]->d_name, "event0") == 0 && strcmp(list[1]->d_name, "event1") == 0);
    HOLDS(scandir("/dev/dri", &list, NULL, alphasort) == 4 && strcmp(list[2]->d_name, "card0") == 0);
    int keyboard = open("/dev/input/event0", O_RDWR | O_NONBLOCK), version;
    HOLDS(ioctl(keyboard, EVIOCGVERSION, &version) == 0 && version == EV_VERSION);
    HOLDS(fcntl(keyboard, F_GETFD) == 0 && fcntl(keyboard, F_GETFL) & O_NONBLOCK);
    struct input_event event = {.type = EV_LED, .code = LED_CAPSL, .value = 1};
    HOLDS(write(keyboard, &event, sizeof event) == sizeof event);
    FAILS(read(keyboard, &event, sizeof event), EAGAIN);
    struct input_absinfo axis;
    FAILS(ioctl(keyboard, EVIOCGABS(ABS_X), &axis), EINVAL);
    int duplicate = dup(open("/dev/input/event1", O_RDONLY | O_NONBLOCK));
    HOLDS(ioctl(duplicate, EVIOCGABS(ABS_X), &axis) == 0 && axis.minimum == 0 && axis.maximum == 639);
    HOLDS(ioctl(duplicate, EVIOCREVOKE, 0) == 0);
    FAILS(read(duplicate, &event, sizeof event), ENODEV);
    FAILS(ioctl(0, EVIOCGVERSION, &version), ENOTTY);
    int terminal = open("/dev/tty1", O_RDWR | O_CLOEXEC);
    struct stat status;
    struct vt_stat state;
    HOLDS(fstat(terminal, &status) == 0 && status.st_rdev == makedev(4, 1));
    HOLDS(ioctl(terminal, VT_GETSTATE, &state) == 0 && state.v_active == 1);
    HOLDS(write(terminal, "text", 4) == 4);
    FAILS(write(open("/dev/tty0", O_RDONLY), "text", 4), EBADF);
}

/* The program is its own window. */
static void events_of_a_window_are_read(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "./keyboard"};
    int window = socket(AF_UNIX, SOCK_STREAM, 0);
    HOLDS(bind(window, (struct sockaddr *)&address, sizeof address) == 0 && listen(window, 4) == 0);
    setenv("RECONVERGE_DRM_WINDOW", ".", 1);
    int keyboard = open("/dev/input/event0", O_RDWR), connection = accept(window, NULL, NULL);
    HOLDS(keyboard >= 0 && connection >= 0);
    struct input_event sent[2] = {{.type = EV_KEY, .code = KEY_A, .value = 1}, {.type = EV_SYN}}, found[2];
    HOLDS(sizeof sent == 48 && write(connection, sent, sizeof sent) == sizeof sent);
    HOLDS(read(keyboard, found, sizeof found) == sizeof found && memcmp(sent, found, sizeof found) == 0);
    close(connection);
    FAILS(read(keyboard, found, sizeof found), ENODEV);
}

#define CLAIM(name) if (strcmp(argv[1], #name) == 0) name()

int main(int argc, char **argv) {
    HOLDS(argc == 2);
    CLAIM(devices_are_found_with_libudev);
    else CLAIM(searches_and_null_are_as_with_libudev);
    else CLAIM(input_devices_answer_as_the_kernel_does);
    else CLAIM(events_of_a_window_are_read);
    else HOLDS(!"a claim");
    return 0;
}
