"""The rows of a partition in batches of one size."""


def yield_batch(iterable, batch_size, num_tensors=1):
    """Batches of a partition's rows, turned: `num_tensors` lists of up to `batch_size` values, one for each of the
    first columns (None: all of them). Binary values are bytes.
    """
    batch = []
    for row in iter(iterable):
        if row is None:
            break
        batch.append([bytes(v) if isinstance(v, bytearray) else v for v in row[:num_tensors]])
        if len(batch) >= batch_size:
            yield [list(column) for column in zip(*batch)]
            batch = []
    if batch:
        yield [list(column) for column in zip(*batch)]


def exact_batches(batches, size):
    """RecordBatches of `size` rows each, in the same order; the last one has what is left."""
    import pyarrow as pa

    def joined(parts):
        return parts[0] if len(parts) == 1 else pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

    held, count = [], 0
    for batch in batches:
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, min(size - count, batch.num_rows - at))
            at, count = at + part.num_rows, count + part.num_rows
            held.append(part)
            if count == size:
                yield joined(held)
                held, count = [], 0
    if held:
        yield joined(held)
