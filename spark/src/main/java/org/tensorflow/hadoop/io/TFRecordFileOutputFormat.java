package org.tensorflow.hadoop.io;

import com.crema.tfrecord.FrameWriter;
import java.io.IOException;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/**
 * Keys as records of TFRecord files, `part-r-00000` and on, with a codec's extension where Hadoop's
 * mapreduce.output.fileoutputformat.compress asks for one.
 */
public class TFRecordFileOutputFormat extends FileOutputFormat<BytesWritable, NullWritable> {
  @Override
  public RecordWriter<BytesWritable, NullWritable> getRecordWriter(TaskAttemptContext context) throws IOException {
    CompressionCodec codec = FrameWriter.codec(context);
    String extension = codec == null ? "" : codec.getDefaultExtension();
    FrameWriter out = FrameWriter.create(getDefaultWorkFile(context, extension), codec, context.getConfiguration());
    return new RecordWriter<BytesWritable, NullWritable>() {
      @Override
      public void write(BytesWritable key, NullWritable value) throws IOException {
        out.write(key.getBytes(), 0, key.getLength());
      }

      @Override
      public void close(TaskAttemptContext ended) throws IOException {
        out.close();
      }
    };
  }
}
