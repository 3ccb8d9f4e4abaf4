// The kernels of the suite (crates/workbench/src/suite) in OpenCL C. The arguments are the inputs in order, then the result. Kernels that
// sort or sum the last input in place have no argument for the result. Textures are arrays.
#pragma OPENCL FP_CONTRACT OFF

kernel void mandel(global uint *out) {
    uint gid = get_global_id(0);
    float cx = (float)(gid & 1023u) * 0.0029296875f - 2.0f;
    float cy = (float)(gid >> 10) * 0.0029296875f - 1.5f;
    float zx = 0.0f, zy = 0.0f, zx2 = 0.0f, zy2 = 0.0f;
    uint i = 0;
    while (i < 255u && zx2 + zy2 <= 4.0f) {
        zy = 2.0f * zx * zy + cy;
        zx = zx2 - zy2 + cx;
        zx2 = zx * zx;
        zy2 = zy * zy;
        i++;
    }
    out[gid] = i;
}

kernel void collatz(global uint *out) {
    uint gid = get_global_id(0), n = gid + 1u, i = 0;
    while (n != 1u && i < 255u) {
        n = n & 1u ? n * 3u + 1u : n >> 1;
        i++;
    }
    out[gid] = i;
}

kernel void matmul(global const float *a, global const float *b, global float *c) {
    local float tile_a[16][16], tile_b[16][16];
    uint tx = get_local_id(0), ty = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (uint tile = 0; tile < 16; tile++) {
        tile_a[ty][tx] = a[row * 256 + tile * 16 + tx];
        tile_b[ty][tx] = b[(tile * 16 + ty) * 256 + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 16; k++) sum += tile_a[ty][k] * tile_b[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * 256 + column] = sum;
}

kernel void nbody(global const float4 *bodies, global float4 *out) {
    local float4 tile[128];
    uint thread = get_local_id(0), i = get_global_id(0);
    float4 own = bodies[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (uint first = 0; first < 2048; first += 128) {
        tile[thread] = bodies[first + thread];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < 128; j++) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float root = rsqrt(dx * dx + 0.0009765625f + dy * dy + dz * dz);
            float factor = root * root * root * tile[j].w;
            x += dx * factor;
            y += dy * factor;
            z += dz * factor;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = (float4)(x, y, z, 0.0f);
}

kernel void sort(global uint *keys) {
    local uint s[512];
    uint t = get_local_id(0);
    keys += get_group_id(0) * 512;
    s[t] = keys[t];
    s[t + 256] = keys[t + 256];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 2; k <= 512; k *= 2)
        for (uint j = k / 2; j > 0; j /= 2) {
            uint i = 2 * t - (t & (j - 1)), one = s[i], other = s[i + j];
            uint low = min(one, other), high = max(one, other);
            bool up = (i & k) == 0;
            s[i] = up ? low : high;
            s[i + j] = up ? high : low;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    keys[t] = s[t];
    keys[t + 256] = s[t + 256];
}

kernel void hash(global uint *out) {
    uint h = get_global_id(0), k = 0x9e3779b9u;
    for (uint round = 0; round < 256; round++) {
        h ^= h << 13;
        h ^= h >> 17;
        h ^= h << 5;
        h += k;
        k += 0x9e3779b9u;
    }
    out[get_global_id(0)] = h;
}

kernel void hash4(global uint4 *out) {
    uint lane = get_global_id(0);
    uint4 h = lane * 4 + (uint4)(0, 1, 2, 3);
    for (uint round = 0; round < 128; round++) {
        h = (h ^ h >> 16) * 0x85ebca6bu;
        h = (h ^ h >> 13) * 0xc2b2ae35u;
        h = (h ^ h >> 16) + round;
    }
    out[lane] = h;
}

kernel void search(global const uint *tree, global const uint *keys, global uint *out) {
    uint lane = get_global_id(0), key = keys[lane], node = 1;
    while (node < 65536u) {
        uint value = tree[node];
        if (value == key) break;
        node = 2 * node + (value < key);
    }
    out[lane] = node;
}

kernel void histogram(global const uint *values, global uint *counts) {
    uint lane = get_global_id(0);
    for (uint i = 0; i < 16; i++) atomic_inc(&counts[values[lane + (i << 17)]]);
}

kernel void scan(global uint *values) {
    local uint s[256];
    uint t = get_local_id(0), sum = values[get_global_id(0)];
    s[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < 256; d *= 2) {
        uint before = t >= d ? s[t - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += before;
        s[t] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    values[get_global_id(0)] = sum;
}

kernel void nested(global uint *out) {
    uint lane = get_global_id(0), a = lane, rounds = (lane ^ lane >> 7) & 31;
    for (uint i = 0; i < rounds; i++) {
        uint inside = a >> 3 & 15;
        for (uint j = 0; j < inside; j++) a = (a << 1 ^ a >> 5) + j;
        a += i;
    }
    out[lane] = a;
}

kernel void table(constant const uint *table, global uint *out) {
    uint lane = get_global_id(0), c = 0xffffffffu, n = lane;
    for (uint i = 0; i < 64; i++) {
        c = table[(c ^ n) & 255] ^ c >> 8;
        n += c;
    }
    out[lane] = c;
}

kernel void table16(constant const uint *table, global uint *out) {
    uint lane = get_global_id(0), c = 0xffffffffu, n = lane;
    for (uint i = 0; i < 64; i++) {
        c = table[(c ^ n) & 15] ^ c >> 4;
        n += c;
    }
    out[lane] = c;
}

kernel void newton(global const float *numbers, global float *out) {
    uint lane = get_global_id(0);
    float a = numbers[lane], x = 1.0f;
    for (uint i = 0; i < 64; i++) {
        float next = (x + a / x) * 0.5f, change = fabs(next - x), least = x * 0.000001f;
        x = next;
        if (change <= least) break;
    }
    out[lane] = x;
}

kernel void convolve(global const float4 *texels, global float4 *out) {
    int place = get_global_id(0), x = place & 511, y = place >> 9;
    float4 sum = 0.0f;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            float weight = (dx ? 1.0f : 2.0f) * (dy ? 1.0f : 2.0f);
            sum += weight * texels[clamp(y + dy, 0, 511) * 512 + clamp(x + dx, 0, 511)];
        }
    out[place] = sum;
}

float4 weighed(float4 left_top, float4 right_top, float4 left_bottom, float4 right_bottom, float x, float y) {
    float4 top = left_top * (1.0f - x) + right_top * x, bottom = left_bottom * (1.0f - x) + right_bottom * x;
    return top * (1.0f - y) + bottom * y;
}

kernel void scale(global const float4 *texels, global float4 *out) {
    int place = get_global_id(0);
    float x = ((place & 511) + 0.5f) * 0.25f - 0.5f, y = ((place >> 9) + 0.5f) * 0.25f - 0.5f;
    float left = floor(x), top = floor(y);
    int x0 = clamp((int)left, 0, 127), x1 = clamp((int)left + 1, 0, 127);
    int y0 = clamp((int)top, 0, 127) * 128, y1 = clamp((int)top + 1, 0, 127) * 128;
    out[place] = weighed(texels[y0 + x0], texels[y0 + x1], texels[y1 + x0], texels[y1 + x1], x - left, y - top);
}

kernel void lit(global const float4 *texels, global const float2 *coordinates, global const float *normals,
                constant const float *light, global float4 *out) {
    uint lane = get_global_id(0);
    float nx = normals[3 * lane], ny = normals[3 * lane + 1], nz = normals[3 * lane + 2];
    float falls = (nx * light[0] + ny * light[1] + nz * light[2]) * rsqrt(nx * nx + ny * ny + nz * nz);
    falls = fmax(falls, 0.0f) * 0.75f + 0.25f;
    float x = coordinates[lane].x * 64.0f - 0.5f, y = coordinates[lane].y * 64.0f - 0.5f;
    float left = floor(x), top = floor(y);
    int x0 = (int)left & 63, x1 = ((int)left + 1) & 63, y0 = ((int)top & 63) * 64, y1 = (((int)top + 1) & 63) * 64;
    out[lane] = falls *
        weighed(texels[y0 + x0], texels[y0 + x1], texels[y1 + x0], texels[y1 + x1], x - left, y - top);
}

float normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float polynomial = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float below = polynomial * 0.39894228f * exp(-0.5f * d * d);
    return d > 0.0f ? 1.0f - below : below;
}

kernel void options(global const float4 *options, global float *out) {
    uint lane = get_global_id(0);
    float share = options[lane].x, strike = options[lane].y, time = options[lane].z, root = sqrt(time);
    float d = (log(share / strike) + 0.065f * time) / (0.3f * root);
    out[lane] = share * normal(d) - strike * exp(-0.02f * time) * normal(d - 0.3f * root);
}

kernel void reduce(global const float *values, global float *out) {
    local float s[256];
    uint t = get_local_id(0);
    values += get_group_id(0) * 1024 + t;
    float sum = values[0] + values[256] + values[512] + values[768];
    s[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint adding = 128; adding > 0; adding /= 2) {
        if (t < adding) {
            sum += s[t + adding];
            s[t] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) out[get_group_id(0)] = sum;
}

kernel void spmv(global const uint *rows, global const uint *columns, global const float *values, global const float *x,
                 global float *y) {
    uint row = get_global_id(0), end = rows[row + 1];
    float sum = 0.0f;
    for (uint j = rows[row]; j < end; j++) sum += values[j] * x[columns[j]];
    y[row] = sum;
}

// A vertex of level 4 stores level 5 for its neighbours without a level.
kernel void bfs(global const uint *rows, global const uint *neighbours, global uint *levels) {
    uint vertex = get_global_id(0);
    if (levels[vertex] != 4) return;
    uint end = rows[vertex + 1];
    for (uint j = rows[vertex]; j < end; j++) {
        uint neighbour = neighbours[j];
        if (levels[neighbour] == 0xffffffffu) levels[neighbour] = 5;
    }
}

// A vertex without a level gets level 5 if a neighbour has level 4.
kernel void pull(global const uint *rows, global const uint *neighbours, global const uint *levels, global uint *out) {
    uint vertex = get_global_id(0), level = levels[vertex];
    if (level == 0xffffffffu) {
        uint end = rows[vertex + 1];
        for (uint j = rows[vertex]; j < end; j++)
            if (levels[neighbours[j]] == 4) {
                level = 5;
                break;
            }
    }
    out[vertex] = level;
}

kernel void stencil(global const float *cells, global float *out) {
    int x = get_global_id(0), y = get_global_id(1);
    int left = max(x - 1, 0), right = min(x + 1, 1023), up = max(y - 1, 0), down = min(y + 1, 1023);
    float centre = cells[y * 1024 + x];
    float around = cells[y * 1024 + left] + cells[y * 1024 + right] + cells[up * 1024 + x] + cells[down * 1024 + x];
    out[y * 1024 + x] = centre + (around - 4.0f * centre) * 0.125f;
}

kernel void stencil4(global const float4 *texels, global float4 *out) {
    int place = get_global_id(0), x = place & 511, y = place >> 9;
    int left = max(x - 1, 0), right = min(x + 1, 511), up = max(y - 1, 0), down = min(y + 1, 511);
    float4 centre = texels[place];
    float4 around = texels[y * 512 + left] + texels[y * 512 + right] + texels[up * 512 + x] + texels[down * 512 + x];
    out[place] = centre + (around - 4.0f * centre) * 0.125f;
}

kernel void find(global const uchar *lines, constant const uchar *word, global uint *out) {
    uint lane = get_global_id(0), place = 0;
    global const uchar *line = lines + lane * 64;
    for (; place < 57; place++) {
        uint i = 0;
        while (i < 8 && line[place + i] == word[i]) i++;
        if (i == 8) break;
    }
    out[lane] = place;
}

// Each store depends on the load before it: Mesa's compiler for nv50 folds a load of local memory into a later instruction,
// even after a store to the same address.
kernel void radix(global const uint4 *keys, global uint *out) {
    local uint counts[16 * 64], sums[64];
    uint t = get_local_id(0), key[8], at[8];
    vstore4(keys[get_global_id(0) * 2], 0, key);
    vstore4(keys[get_global_id(0) * 2 + 1], 1, key);
    for (uint digit = 0; digit < 16; digit++) counts[digit * 64 + t] = 0;
    for (uint i = 0; i < 8; i++) {
        at[i] = (key[i] >> 8 & 15) * 64 + t;
        counts[at[i]]++;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint i = 0; i < 16; i++) sum += counts[t * 16 + i];
    sums[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < 64; d *= 2) {
        uint before = t >= d ? sums[t - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += before;
        sums[t] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = 16; i-- > 0;) {
        sum -= counts[t * 16 + i];
        counts[t * 16 + i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out += get_group_id(0) * 512;
    for (uint i = 0; i < 8; i++) {
        out[counts[at[i]]] = key[i];
        counts[at[i]]++;
    }
}
