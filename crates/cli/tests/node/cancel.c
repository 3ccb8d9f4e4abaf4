/* A thread that is cancelled while it waits in a function of the C library ends, as it does without the library. */
#include "node.h"
#include <pthread.h>

static int ends[2];

static void *writes(void *unused) {
    static char bytes[1 << 20];
    for (;;)
        write(ends[1], bytes, sizeof bytes);
    return unused;
}

static void *opens(void *unused) {
    /* Waits for a writer. */
    open("fifo", O_RDONLY);
    return unused;
}

int main(void) {
    int node = opened();
    HOLDS(pipe(ends) == 0 && (mkfifo("fifo", 0600) == 0 || errno == EEXIST));
    void *(*all[])(void *) = {writes, opens};
    for (int number = 0; number < 2; number++) {
        pthread_t thread;
        void *result;
        HOLDS(pthread_create(&thread, NULL, all[number], NULL) == 0);
        usleep(100000);
        HOLDS(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    HOLDS(closed(node, created(node, 4096)) == 0);
    return 0;
}
