/* A stand-in for NVIDIA's management library: its calls as the driver exports them, its answers from NVML_SAYS.
 *
 * NVML_SAYS is "<percent of GPU 0> <number of GPUs> [<pid>:<percent> ...]"; "-" as the percent is not supported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

typedef struct { unsigned int gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil, memUtil, encUtil, decUtil;
} sample_t;

static char words[4096];
static char *said[64];
static int count;

int nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    count = 0;
    strncpy(words, getenv("NVML_SAYS") ? getenv("NVML_SAYS") : "", sizeof words - 1);
    for (char *word = strtok(words, " "); word && count < 64; word = strtok(NULL, " ")) said[count++] = word;
    return count < 2 ? 9 /* driver not loaded */ : SUCCESS;
}

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int result) { (void)result; return "as the test wants it"; }

int nvmlDeviceGetCount_v2(unsigned int *found) { *found = (unsigned int)atoi(said[1]); return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    if (index >= (unsigned int)atoi(said[1])) return INVALID_ARGUMENT;
    *device = said;
    return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int length)
{
    (void)device;
    strncpy(name, "NVIDIA TITAN X (Pascal)", length);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory)
{
    (void)device;
    memory->total = 12ull << 30;
    memory->free = memory->total;
    memory->used = 0;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, utilization_t *found)
{
    (void)device;
    if (said[0][0] == '-') return NOT_SUPPORTED;
    found->gpu = (unsigned int)atoi(said[0]);
    found->memory = 0;
    return SUCCESS;
}

int nvmlDeviceGetProcessUtilization(void *device, sample_t *samples, unsigned int *size, unsigned long long since)
{
    (void)device;
    struct timeval now;
    unsigned int there = (unsigned int)(count - 2);
    gettimeofday(&now, NULL);
    if (!there) return NOT_FOUND;
    if (!samples || *size < there) {
        *size = there;
        return INSUFFICIENT_SIZE;
    }
    for (unsigned int each = 0; each < there; each++) {
        memset(&samples[each], 0, sizeof samples[each]);
        sscanf(said[each + 2], "%u:%u", &samples[each].pid, &samples[each].smUtil);
        samples[each].timeStamp = (unsigned long long)now.tv_sec * 1000000ull + (unsigned long long)now.tv_usec;
    }
    *size = there;
    return samples[0].timeStamp < since ? NOT_FOUND : SUCCESS;
}
