#include "dtrain/base.h"

static struct {
    dt_work_fn *told;
    void *arg;
} watcher;

void dt_work_watch(dt_work_fn *told, void *arg)
{
    watcher.arg = arg;
    watcher.told = told;
}

void dt_work_gets_on(void)
{
    if (watcher.told) watcher.told(watcher.arg);
}
