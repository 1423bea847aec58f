#define FORMAT LIBSVM
#include "data.h"
