/* A disk that is slow: whatever is synced takes QUORATE_CAMPAIGN_SYNC_MS longer, and every 20th
 * time QUORATE_CAMPAIGN_STALL_MS. Loaded before the program (LD_PRELOAD), since a slow device takes
 * a device mapper, which few machines let one have. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static long millis(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void linger(void) {
    static atomic_int count;
    long span = millis("QUORATE_CAMPAIGN_SYNC_MS");
    if (atomic_fetch_add(&count, 1) % 20 == 19)
        span += millis("QUORATE_CAMPAIGN_STALL_MS");
    struct timespec left = {span / 1000, span % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

int fsync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    linger();
    return next(file);
}

int fdatasync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    linger();
    return next(file);
}
