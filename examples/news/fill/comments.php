<?php

/**
 * The parts of comments: a comment has one of each part, or of some of them.
 *
 * The slots are those of stories.php, filled as in the article that the comment is on.
 */

declare(strict_types=1);

return [
    'openings' => [
        'At last.', 'About time.', 'Good news for once.', 'I was there on {day}.', 'Thank you for writing about this.',
        'I grew up on {street}.', 'My neighbour told me already.', 'Well, well.', 'I read this twice.', 'Not for the first time!',
        'As somebody from {place} I can only smile.', 'Does anybody remember how it was before?', 'Good on {name}.',
        'I had my doubts.', 'That made my morning.', 'One question.', 'A small correction.', 'My grandmother would have liked this.',
    ],
    'middles' => [
        'It was nearer to {m} than the paper says, I counted.', 'We walked over from {place} and it was worth it.',
        'What {name} does there cannot be praised enough.', 'I wonder what it will look like in {month}.',
        'Nobody asked those of us who live on {street}.', 'The same was promised {n} years ago, and look.',
        'You should have asked {other}, who knows the whole story.', 'The {group} has been saying so for years.',
        'My children talk of nothing else.', 'It is a pity about the parking, but one gets used to walking.',
        'There was a time when all of this was fields.', 'I would only wish for a bench.',
        'Will it be on {day}s only, or during the week as well?', 'If they need a hand with the next one, I have a van.',
        'In {place} they did it the other way round, and it works just as well.', 'I have lived here for {m} years and never knew.',
    ],
    'closings' => [
        'See you on {day}!', 'More of this, please.', 'I remain sceptical.', 'Greetings from {place}.', 'Just saying.',
        'And the soup was good.', 'We shall see.', 'Keep it up.', 'Anyway.', 'I will bring cake.', 'Who is coming along?', 'Thank you all.',
    ],
];
