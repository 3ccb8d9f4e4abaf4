/* A sandbox that refuses process_vm_readv and process_vm_writev: addresses are checked all the same. */
#include "node.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    HOLDS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        puts("skipped: the system has no filters of system calls");
        return 0;
    }
    int node = opened();
    uint32_t handle = created(node, 65536);
    HOLDS(submitted(node, handle) == 0 && used(node) == 65536);
    FAILS(ioctl(node, GEM_CREATE, (void *)0x10), EFAULT);
    struct submit submit = {.chunks = 1, .addresses = 0x1000};
    FAILS(ioctl(node, CS, &submit), EFAULT);
    struct gem_create *answer = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAILS(ioctl(node, GEM_CREATE, answer), EFAULT);
    struct info info = {.request = 0x11, .value = 0x10};
    FAILS(ioctl(node, INFO, &info), EFAULT);
    FAILS(open((char *)0x10, O_RDWR), EFAULT);
    HOLDS(closed(node, handle) == 0);
    return 0;
}
