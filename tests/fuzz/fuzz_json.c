#define FORMAT JSON
#include "data.h"
