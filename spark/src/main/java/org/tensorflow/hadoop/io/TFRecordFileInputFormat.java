package org.tensorflow.hadoop.io;

import com.crema.tfrecord.FileSplitting;
import com.crema.tfrecord.SplitReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;

/**
 * TFRecord files, key = a record. Files are split, all but those that a codec packs (by their extension) and those read
 * with tensorflow.read.crc32check=false; tensorflow.read.splittable=false reads each file by one task. Every key is an
 * object of its own, with an array of exactly the record's length, as programs parse getBytes() as a whole.
 */
public class TFRecordFileInputFormat extends FileInputFormat<BytesWritable, NullWritable> {
  private FileSplitting splitting; // of the job that asks, which is one

  @Override
  protected boolean isSplitable(JobContext context, Path file) {
    if (splitting == null) splitting = new FileSplitting(context.getConfiguration());
    return splitting.splittable(file);
  }

  /** Files of a folder in the order of their names, which not every file system lists them in. */
  @Override
  protected List<FileStatus> listStatus(JobContext job) throws IOException {
    List<FileStatus> files = new ArrayList<>(super.listStatus(job));
    int begin = 0;
    for (int i = 1; i <= files.size(); i++) {
      if (i < files.size() && folder(files.get(i)).equals(folder(files.get(begin)))) continue;
      files.subList(begin, i).sort(Comparator.comparing(file -> file.getPath().getName()));
      begin = i;
    }
    return files;
  }

  private static Path folder(FileStatus file) {
    return file.getPath().getParent();
  }

  @Override
  public RecordReader<BytesWritable, NullWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
    return new Reader();
  }

  private static final class Reader extends RecordReader<BytesWritable, NullWritable> {
    private SplitReader records;
    private BytesWritable key;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) throws IOException {
      FileSplit part = (FileSplit) split;
      records = new SplitReader(part.getPath(), part.getStart(), part.getLength(), context.getConfiguration());
    }

    @Override
    public boolean nextKeyValue() throws IOException {
      boolean more = records.next();
      key = more ? new BytesWritable(records.take()) : null;
      return more;
    }

    @Override
    public BytesWritable getCurrentKey() {
      return key;
    }

    @Override
    public NullWritable getCurrentValue() {
      return NullWritable.get();
    }

    @Override
    public float getProgress() throws IOException {
      return records.progress();
    }

    @Override
    public void close() throws IOException {
      if (records != null) records.close();
    }
  }
}
