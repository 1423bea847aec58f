#define FORMAT IDX
#include "data.h"
