/* Control flow, and arrays of a thread. */
#include "compute.h"

static void grid(void) {
    GLuint out = storage(0, 64 * 48, NULL);
    static uint words[64 * 48];
    for (uint n = 0; n < 64 * 48; n++)
        words[n] = n * 3 + 1;
    compute(OUT GLSL(layout(local_size_x = 8, local_size_y = 8) in; void main() {
        uint n = gl_GlobalInvocationID.y * 64u + gl_GlobalInvocationID.x;
        o[n] = n * 3u + 1u;
    }));
    dispatch(8, 6, 1);
    same(out, words);
}

BOTH(collatz_text, uint collatz_steps(uint n) {
    uint steps = 0u;
    while (n > 1u) {
        n = (n & 1u) == 0u ? n >> 1 : 3u * n + 1u;
        steps++;
    }
    return steps;
})

static void collatz(void) {
    each(collatz_text, "collatz_steps(n)", 16, collatz_steps);
}

BOTH(nested_text, uint nested_sum(uint n) {
    uint sum = n;
    for (uint a = 0u; a < (n & 7u); a++) {
        for (uint b = a; b < ((n >> 3) & 7u); b++) {
            if (((a ^ b) & 1u) == 0u) {
                uint c = n % 13u;
                while (c > b) {
                    sum = sum * 5u + c;
                    c -= 2u;
                    if (c > 20u)
                        c = 0u;
                }
            } else {
                sum ^= a << b;
            }
        }
        sum += a;
    }
    return sum;
})

static void nested(void) {
    each(nested_text, "nested_sum(n)", 10, nested_sum);
}

BOTH(early_text, uint early_value(uint n) {
    if (n % 5u == 0u)
        return 1u;
    for (uint k = 0u; k < 40u; k++) {
        if (k * k > n)
            return k + 100u;
        if ((n ^ k) % 17u == 3u) {
            if ((n & 16u) != 0u)
                return k + 200u;
            n += 7u;
        }
    }
    return n;
})

static void early_returns(void) {
    GLuint out = storage(0, 1024, NULL);
    static uint words[1024];
    char text[4000];
    /* main returns as well: words 900 to 1023 stay. */
    snprintf(text, sizeof text, OUT "%s%s", early_text, GLSL(layout(local_size_x = 32) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        if (n >= 900u)
            return;
        if (n % 3u == 0u) {
            o[n] = 7u;
            return;
        }
        o[n] = early_value(n);
    }));
    for (uint n = 0; n < 1024; n++)
        words[n] = n >= 900 ? FILL : n % 3 == 0 ? 7 : early_value(n);
    compute(text);
    dispatch(32, 1, 1);
    same(out, words);
}

BOTH(loops_text, uint loops_value(uint n) {
    uint sum = 0u;
    for (uint k = 0u; k < 30u; k++) {
        if ((k + n) % 4u == 0u)
            continue;
        if (k > (n & 31u))
            break;
        uint j = k;
        do {
            j++;
            if (j % 7u == 0u)
                break;
            if (j % 3u == 0u)
                continue;
            sum += j;
        } while (j < 20u);
        sum = sum * 3u + k;
    }
    return sum;
})

static void loops(void) {
    each(loops_text, "loops_value(n)", 8, loops_value);
}

BOTH(switches_text, uint switch_value(uint n) {
    uint value = 0u;
    for (uint k = 0u; k < 6u; k++) {
        switch ((n >> k) & 7u) {
        case 0u:
            value += 1u;
            break;
        case 1u:
        case 2u:
            value = value * 3u + 2u;
            break;
        case 3u:
            value ^= 0x55u;
        case 4u:
            value += 11u;
            if (value > 1000u)
                break;
            value += 13u;
            break;
        case 5u:
            return value + 5000u;
        default:
            value = (value << 1) | (value >> 31);
        }
    }
    return value;
})

static void switches(void) {
    each(switches_text, "switch_value(n)", 16, switch_value);
}

static uint functions_value(uint n) {
    uint quotient = n / 10, rest = n % 10, sum = 0, total = n;
    for (uint k = 0; k < 4; k++) {
        uint last = total & 3;
        total = total / 2 + last * 5;
        sum += last * (k + 1);
    }
    uint a = total, b = sum;
    if (n & 1)
        a = sum, b = total;
    return quotient * 1000003 + rest * 10007 + sum * 101 + a * 3 + b;
}

static void functions(void) {
    each(GLSL(
        struct Parts { uint quotient; uint rest; };
        Parts parts(uint n) { return Parts(n / 10u, n % 10u); }
        void step_down(inout uint total, out uint last) {
            last = total & 3u;
            total = total / 2u + last * 5u;
        }
        void exchange(inout uint a, inout uint b) {
            uint c = a;
            a = b;
            b = c;
        }
        uint value(uint n) {
            Parts p = parts(n);
            uint sum = 0u;
            uint total = n;
            for (uint k = 0u; k < 4u; k++) {
                uint last;
                step_down(total, last);
                sum += last * (k + 1u);
            }
            uint a = total;
            uint b = sum;
            if ((n & 1u) != 0u)
                exchange(a, b);
            return p.quotient * 1000003u + p.rest * 10007u + sum * 101u + a * 3u + b;
        }), "value(n)", 8, functions_value);
}

/* Fixed-point Mandelbrot: deep divergence. */
static int as_int(uint n) {
    return n;
}

BOTH(mandelbrot_text, uint escape(uint n) {
    int cx = as_int((n & 31u) * 3072u / 32u) - 2048;
    int cy = as_int((n >> 5) * 2048u / 32u) - 1024;
    int x = 0;
    int y = 0;
    uint steps = 0u;
    while (steps < 200u && x * x + y * y < 4 * 1024 * 1024) {
        int next = (x * x - y * y) / 1024 + cx;
        y = x * y / 512 + cy;
        x = next;
        steps++;
    }
    return steps;
})

static void mandelbrot(void) {
    char text[2000];
    snprintf(text, sizeof text, "int as_int(uint n) { return int(n); }\n%s", mandelbrot_text);
    each(text, "escape(n)", 16, escape);
}

/* Pairs of values among which a thread chooses by conditions that are not flow. */
BOTH(choices_text, uint choices(uint n) {
    uint a = n * 2654435761u;
    uint b = a ^ a >> 13;
    bool p = (a & 4u) != 0u;
    bool q = b > 0x40000000u;
    bool r = (p && !q) || (a % 3u == 0u && q);
    uint c = p ? a : b;
    uint d = q == r ? c + 1u : c - 1u;
    float f = r ? 2.5f : p ? 0.25f : 1.0f;
    f = q ? -f : f;
    return (f < 0.5f ? d : c ^ d) + (p != q ? 1u : 0u) + (f * 4.0f > 3.0f ? 100u : 0u);
})

static void choices_of_values(void) {
    each(choices_text, "choices(n)", 8, choices);
}

/* A loop around a switch, calls in loops, and loops whose lanes leave at every depth. */
BOTH(maze_text,
uint maze_step(uint state, uint by) {
    for (uint k = 0u; k < 5u; k++) {
        state = state * 5u + by;
        if ((state & 0x700u) == 0u)
            return state ^ k;
        for (;;) {
            state ^= state << 3;
            if ((state & 3u) != 1u)
                break;
            state += 3u;
            if ((state & 0x30u) == 0x20u)
                return state + k;
        }
    }
    return state;
}
uint maze(uint n) {
    uint state = n;
    for (uint k = 0u; k < 8u; k++) {
        if ((state & 1u) == 0u)
            state = maze_step(state, k);
        else if ((state & 6u) == 2u) {
            state = maze_step(state + 1u, n & 7u);
            if ((state & 15u) == 7u)
                return state;
        } else {
            for (uint j = state & 7u; j > 0u; j--) {
                if (((state >> j) & 1u) == 0u)
                    continue;
                state = state * 3u + j;
                if (state > 0xf0000000u)
                    break;
            }
        }
    }
    return state;
})

static void calls_in_loops(void) {
    each(maze_text, "maze(n)", 16, maze);
}

BOTH(sorted_text, uint sorted_sum(uint n) {
    uint values[16];
    for (uint k = 0u; k < 16u; k++) {
        n = n * 1664525u + 1013904223u;
        values[k] = n >> 12;
    }
    for (uint k = 1u; k < 16u; k++) {
        uint value = values[k];
        uint at = k;
        while (at > 0u && values[at - 1u] > value) {
            values[at] = values[at - 1u];
            at--;
        }
        values[at] = value;
    }
    uint sum = 0u;
    for (uint k = 0u; k < 16u; k++)
        sum = sum * 31u + values[k];
    return sum;
})

static void local_array(void) {
    each(sorted_text, "sorted_sum(n)", 12, sorted_sum);
}

BOTH(queens_text, uint queens(uint n) {
    uint cols[8];
    uint left[8];
    uint right[8];
    uint todo[8];
    uint found = 0u;
    uint bit = 1u << (n % 7u);
    cols[1] = bit;
    left[1] = bit << 1;
    right[1] = bit >> 1;
    todo[1] = 127u & ~(cols[1] | left[1] | right[1]);
    uint row = 1u;
    while (row > 0u) {
        uint open = todo[row];
        if (open == 0u) {
            row--;
            continue;
        }
        uint next = open & (0u - open);
        todo[row] = open ^ next;
        if (row == 6u) {
            found++;
            continue;
        }
        cols[row + 1u] = cols[row] | next;
        left[row + 1u] = (left[row] | next) << 1;
        right[row + 1u] = (right[row] | next) >> 1;
        row++;
        todo[row] = 127u & ~(cols[row] | left[row] | right[row]);
    }
    return found * 100u + n;
})

static void queens_stack(void) {
    each(queens_text, "queens(n)", 2, queens);
}

/* 1 KiB of private memory a thread. */
BOTH(sieve_text, uint sieve(uint n) {
    uint words[256];
    for (uint k = 0u; k < 256u; k++)
        words[k] = k * n;
    for (uint k = 0u; k < 256u; k++) {
        uint other = (words[k] + n) & 255u;
        uint kept = words[other];
        words[other] = words[k] + k;
        words[k] = kept ^ n;
    }
    uint sum = 0u;
    for (uint k = 0u; k < 256u; k += 3u)
        sum = (sum << 3 | sum >> 29) ^ words[k];
    return sum;
})

static void local_kilobyte(void) {
    each(sieve_text, "sieve(n)", 5, sieve);
}

#define SHA_CONSTANTS \
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u, 0xd807aa98u, \
    0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, \
    0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, \
    0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, \
    0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, \
    0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, \
    0x5b9cca4fu, 0x682e6ff3u, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, \
    0xc67178f2u

static const uint k_sha[64] = {SHA_CONSTANTS};

/* The first word of SHA-256 of one block that begins with n and is else zero, in its padded form. */
BOTH(sha_text,
uint turned(uint v, uint by) { return v >> by | v << (32u - by); }
uint sha(uint n) {
    uint w[64];
    for (uint t = 0u; t < 16u; t++)
        w[t] = t == 0u ? n : t == 1u ? 0x80000000u : t == 15u ? 32u : 0u;
    for (uint t = 16u; t < 64u; t++) {
        uint s0 = turned(w[t - 15u], 7u) ^ turned(w[t - 15u], 18u) ^ w[t - 15u] >> 3;
        uint s1 = turned(w[t - 2u], 17u) ^ turned(w[t - 2u], 19u) ^ w[t - 2u] >> 10;
        w[t] = w[t - 16u] + s0 + w[t - 7u] + s1;
    }
    uint a = 0x6a09e667u; uint b = 0xbb67ae85u; uint c = 0x3c6ef372u; uint d = 0xa54ff53au;
    uint e = 0x510e527fu; uint f = 0x9b05688cu; uint g = 0x1f83d9abu; uint h = 0x5be0cd19u;
    for (uint t = 0u; t < 64u; t++) {
        uint t1 = h + (turned(e, 6u) ^ turned(e, 11u) ^ turned(e, 25u)) + ((e & f) ^ (~e & g)) + k_sha[t] + w[t];
        uint t2 = (turned(a, 2u) ^ turned(a, 13u) ^ turned(a, 22u)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
    }
    return a + 0x6a09e667u;
})

static void sha256(void) {
    char text[6000];
    snprintf(text, sizeof text, "const uint k_sha[64] = uint[64](%s);\n%s", EXPANDED(SHA_CONSTANTS), sha_text);
    each(text, "sha(n)", 4, sha);
}

const struct test FLOW[] = {
    TEST(grid), TEST(collatz), TEST(nested), TEST(early_returns), TEST(loops), TEST(switches), TEST(functions),
    TEST(mandelbrot), TEST(choices_of_values), TEST(calls_in_loops), TEST(local_array), TEST(queens_stack),
    TEST(local_kilobyte), TEST(sha256), {0},
};
